"""Files as people have them: an index, ids, decisions, other names of the labels, rounded probabilities."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from pyarrow import csv as arrow_csv

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional.inputs.faults import ProbabilitiesWarning
from tests.evaluation.files.alone import score
from tests.refused import refused_file

PLAIN = "red,green,target\n0.7,0.3,red\n0.4,0.6,red\n0.1,0.9,green\n"
USUAL = """,id,Label,red,green,pred,site
0,a7,red,0.7,0.3,red,north
1,a9,red,0.4,0.6,green,
5,b1,green,0.1,0.9,green,south
"""
NAMED = ConcernSpec(["red", "green"])


def scored(
    path: Path, *, concern: ConcernSpec | None = None, **options: Any
) -> ClassifierScores:
    names = None if concern is None else concern.classes
    return score(Predictions(path, ReadOptions(**options), class_names=names), concern)


def how(path: Path, text: str, **options: Any) -> str:
    path.write_text(text)
    return Predictions(path, ReadOptions(**options)).how().removeprefix(f"{path.name}: ")


def as_parquet(path: Path) -> Path:
    table = arrow_csv.read_csv(path)
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize(("suffix", "index"), [(".csv", "Unnamed: 0"), (".parquet", "")])
@pytest.mark.parametrize("concern", [None, NAMED])
def test_what_is_no_class_is_left_out_and_named(
    tmp_path: Path, suffix: str, index: str, concern: ConcernSpec | None
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PLAIN)
    plain = scored(path, concern=concern)
    path.write_text(USUAL)
    path = path if suffix == ".csv" else as_parquet(path)
    found = scored(path, concern=concern)
    assert found.values == pytest.approx(plain.values)
    assert found.class_names == ["red", "green"]
    roles = f'labels "Label"; scores red, green; not used: {index}, id, pred, site'
    assert Predictions(path).how() == f"{path.name}: {roles}"


@pytest.mark.parametrize(
    ("columns", "rows", "read"),
    [
        (
            "y,prob_0,prob_1,prob_10,prob_2",
            "2,0,0,.1,.9",
            'labels "y"; scores prob_0, prob_1, prob_10, prob_2 = classes 0, 1, 10, 2',
        ),
        (
            "y," + ",".join(f"p_{n}" for n in sorted(map(str, range(11)))),
            "10,"
            + ",".join("1" if n == "10" else "0" for n in sorted(map(str, range(11)))),
            'labels "y"; scores p_0 to p_10 = classes 0 to 10',
        ),
        (
            "y,prob_1,prob_2,prob_3",
            "3,0,0,1",
            'labels "y"; scores prob_1 to prob_3 = classes 1 to 3',
        ),
        (
            "y,prob_a,prob_b,age",
            "b,.2,.8,33",
            'labels "y"; scores prob_a, prob_b = classes a, b; not used: age',
        ),
        (
            "y,share,Predictioncat,Predictiondog,pred",
            "cat,.03,.3,.7,cat",
            'labels "y"; scores Predictioncat, Predictiondog = classes cat, dog; not used: share, pred',
        ),
        (
            "y,a_score,b_score",
            "b,.2,.8",
            'labels "y"; scores a_score, b_score = classes a, b',
        ),
        (
            "y,red,green",
            "green,70,30",
            'labels "y"; scores red, green; percentages, divided by 100',
        ),
        ("y,p", "pos,.9\nneg,.2", 'labels "y"; probability of class pos "p"'),
        ("y_true,y_pred", "cat,dog\ncat,cat", 'labels "y_true"; predicted labels "y_pred"'),
        (
            "y,probs",
            '1,"[0.1, 0.9]"\n0,"[0.6, 0.4]"',
            'labels "y"; lists of scores "probs" = classes 0, 1',
        ),
        (
            "votes_a,votes_b,a,b",
            "3,1,.7,.3",
            "degrees of truth votes_a, votes_b; scores a, b; votes, divided by their sum",
        ),
        (
            "y_a,y_b,a,b",
            "1,0,.7,.3\n0,1,.4,.6",
            "degrees of truth y_a, y_b; scores a, b; one-hot, so labels",
        ),
        (
            "true_a,true_b,a,b",
            "1,0,.7,.3",
            "degrees of truth true_a, true_b; scores a, b; one-hot, so labels",
        ),
    ],
)
def test_the_meaning_of_columns_is_told(
    columns: str, rows: str, read: str, tmp_path: Path
) -> None:
    assert how(tmp_path / "p.csv", f"{columns}\n{rows}\n") == read


@pytest.mark.parametrize("names", ["grade0,grade1,grade2", "mild,severe,worst"])
def test_a_class_without_probability_in_the_first_rows_is_a_class(
    tmp_path: Path, names: str
) -> None:
    first, second, _ = names.split(",")
    rows = [f"{first},0.8,0.2,0\n{second},0.3,0.7,0\n"] * 60 + [
        f"{second},0.1,0.89,0.01\n"
    ] * 20
    path = tmp_path / "p.csv"
    path.write_text(f"label,{names}\n{''.join(rows)}")
    assert scored(path).class_names == names.split(",")


def test_a_file_with_one_class_needs_the_names_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("target,pred\na,a\na,a\n")
    with refused_file("only_class", name="a"):
        scored(path)
    assert scored(path, classes=["a", "b"]).values["accuracy"] == 1


def test_what_the_concern_or_an_option_names_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("target,Red,green,sure\nred,0.7,0.3,0.7\n")
    assert scored(path, concern=NAMED).values["accuracy"] == 1
    for name in ("label_column", "decision_column", "id_column"):
        option = f"--{name.replace('_', '-')}"
        with refused_file("has_named_column", name="truth", option=option):
            scored(path, **{name: "truth"})
    with refused_file("has_named_column", name="p_*", option="--score-columns"):
        scored(path, score_columns=["p_*"])


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("cat\nowl\ndog\n", "labels.csv: as_many_rows"),  # the first is a header
        ("red\nred\n", "labels.csv: as_many_rows"),
        ("id,label\nx1,red\nx1,red\n", "different_ids, row 2, column id"),
        ("id,label\nx1,red\n", "labels.csv: rows_of_file"),
    ],
)
def test_labels_of_another_file_must_be_those_of_all_rows(
    text: str, refusal: str, tmp_path: Path
) -> None:
    path, labels = tmp_path / "p.csv", tmp_path / "labels.csv"
    path.write_text("id,red,green\nx1,0.7,0.3\nx2,0.4,0.6\nx3,0.1,0.9\n")
    labels.write_text(text)
    with refused_file(refusal):
        scored(path, labels=labels)


def test_rows_with_gaps_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(
        "target,red,green,who\nred,0.7,0.3,a\n,0.4,0.6,b\ngreen,,0.9,c\ngreen,0.6,0.4,\nred,0.8,0.2,d\n"
    )
    found = scored(path, missing="drop", cluster="who")
    assert (found.rows, found.values["accuracy"]) == (2, 1)
    assert found.file_notes == [
        "3 rows without a label, prediction, cluster, unit, weight or cost left out: values are those of the others."
    ]


def test_rounded_probabilities_are_divided_by_their_sum(tmp_path: Path) -> None:
    path, generator = tmp_path / "p.csv", torch.Generator().manual_seed(0)
    probs = torch.rand(200, 5, generator=generator, dtype=torch.float64)
    probs /= probs.sum(dim=1, keepdim=True)
    lines = [",".join(["0", *[f"{p:.2f}" for p in row]]) for row in probs.tolist()]
    path.write_text("\n".join(["target,0,1,2,3,4", *lines, ""]))
    found = scored(path)
    [note] = [note for note in found.file_notes if "rounded" in note]
    assert note.startswith("The probabilities are rounded to 2 decimals: ")
    assert note.endswith(" rows sum to 0.98 to 1.02, and were divided by their sum.")
    brier = (probs - torch.eye(5)[0]).square().sum(1).mean().item()
    assert found.values["brier_score"] == pytest.approx(brier, abs=0.01)
    with pytest.warns(ProbabilitiesWarning):
        logits = scored(path, from_logits=True)
    assert "rounded" not in "".join(logits.file_notes)


@pytest.mark.parametrize(
    "row",
    [
        "0.5,0.4,0",
        "0.9,0.8,0",
        "0.71,0.27,0",
        "0.01,0.02,0",
        "0.333,0.333,0",
        "0,0,0",
        "1.00,0.02,1",
    ],
)
def test_sums_that_rounding_does_not_explain_are_refused(tmp_path: Path, row: str) -> None:
    (tmp_path / "p.csv").write_text(
        f"0,1,target\n0.25,0.75,1\n{row}\n0.66,0.33,0\n"
    )  # the last is explained
    with refused_file("probabilities, row 2"):
        scored(tmp_path / "p.csv")


def test_rows_of_other_patients_are_not_matched_in_order(tmp_path: Path) -> None:
    paths = [tmp_path / "A.csv", tmp_path / "B.csv"]
    for path, patients in zip(paths, ("pq", "qp"), strict=True):
        rows = [f"{patient},0.7,0.3,a" for patient in patients]
        path.write_text("\n".join(["patient_id,a,b,target", *rows, ""]))
    with refused_file("B.csv: group_as_first, row 1, column patient_id", value="q"):
        score_models(open_models(paths, ReadOptions()), None)


@pytest.mark.parametrize(
    ("rows", "refusal"),
    [
        ("x4,.9,.1,a x2,.2,.8,b x1,.7,.3,a x3,.6,.4,b", None),
        ("x4,.9,.1,a x2,.2,.8,b", "{}: rows_of_file"),
        ("x1,.7,.3,a x2,.2,.8,b x3,.6,.4,b x4,.9,.1,a x9,.5,.5,a", "A.csv: rows_of_file"),
        ("x1,.7,.3,a x2,.2,.8,b x2,.2,.8,b", "different_ids, row 3, column id"),
        ("x1,.7,.3,a ,.5,.5,a", "names_row, row 2, column id"),
        ("x1,.7,.3,a x3,.6,.4,b x4,.9,.1,a x2,.5,.5,a", "label_as_first, row 4"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_of_several_files_are_matched_by_id(
    tmp_path: Path, rows: str, refusal: str | None, suffix: str
) -> None:
    first, second = tmp_path / "A.csv", tmp_path / "B.csv"
    first.write_text("id,a,b,target\nx1,.7,.3,a\nx2,.2,.8,b\nx3,.6,.4,b\nx4,.9,.1,a")
    second.write_text("\n".join(["id,a,b,target", *rows.split()]))
    second = as_parquet(second) if suffix == ".parquet" else second
    if refusal is not None:
        with refused_file(refusal.format(second.name)):
            score_models(open_models([first, second], ReadOptions(id_column="id")), None)
        return
    result = score_models(open_models([first, second], ReadOptions(id_column="id")), None)
    assert result.models["A"].values == pytest.approx(result.models["B"].values)
    with refused_file("label_as_first, row 3"):
        score_models(open_models([first, second], ReadOptions()), None)


def test_lists_of_scores_are_read_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('probs,label\n"[.9, .1]",0\n"[.2, .8]",0\n', encoding="utf-16")
    assert scored(path).values["accuracy"] == 0.5


UNLIKELY = {
    "scores that tell labels": "label,prob\n" + "0,.1\n1,.7\n1,.3\n" * 10,
    "no row is right": "y_true,y_pred\n" + "a,b\nb,a\n" * 10,
    "predicted labels that no row has": "y_true,y_pred\n" + "A,A\nB,B.\nB,A\n" * 10,
}
"""By what a note says: the content of a file."""


@pytest.mark.parametrize("name", UNLIKELY)
def test_what_is_unlikely_has_a_note(name: str, tmp_path: Path) -> None:
    lines = UNLIKELY[name].splitlines()
    # A share takes no minimum of rows.
    few = int(name == "predicted labels that no row has")
    for rows, notes in ((lines, 1), (lines[:4], few)):
        (tmp_path / "p.csv").write_text("\n".join(rows))
        predictions = Predictions(tmp_path / "p.csv")
        predictions.rows()
        assert len(predictions.notes) == notes


READ = {
    "the name of the only column has two words": (
        "Churn Label\nyes\nno\nyes\n",
        ["Churn Label"],
        3,
    ),
    "pandas calls a column 0": ("0\n0.25\n0.5\n1.0\n", ["column 1"], 3),
    "pandas calls a column 0, beside its index": (
        ",0\n0,0.25\n1,0.5\n",
        ["Unnamed: 0", "column 2"],
        2,
    ),
    "a whole number among decimals is a value": ("0\n0.25\n1\n", ["column 1"], 3),
}
"""By what is read: the content of a file, the names of its columns, and its number of rows."""


@pytest.mark.parametrize("name", READ)
def test_headers_that_name_nothing_or_one_thing(name: str, tmp_path: Path) -> None:
    text, names, rows = READ[name]
    path = tmp_path / "p.csv"
    path.write_text(text)
    table = open_table(path)
    assert table.names == names
    assert len(table.peek()[names[0]]) == rows


@pytest.mark.parametrize(
    ("labels", "decisions"),
    [("01", ("False", "True")), (("no", "yes"), "01"), (("FALSE", "TRUE"), ("no", "yes"))],
)
def test_words_for_a_negative_and_a_positive_class_are_the_same(
    labels: Sequence[str], decisions: Sequence[str], tmp_path: Path
) -> None:
    path, pairs = tmp_path / "p.csv", ((0, 0), (1, 1), (0, 1), (1, 1))
    lines = [f"{labels[label]},{decisions[decision]}" for label, decision in pairs]
    path.write_text("\n".join(["y_true,y_pred", *lines]))
    read = Predictions(path).rows()
    assert [*zip(read.target.tolist(), read.scores[:, 0].tolist(), strict=True)] == [*pairs]
    scored = [
        f"{line},{score}" for line, score in zip(lines, (0.2, 0.7, 0.4, 0.9), strict=True)
    ]
    path.write_text("\n".join(["y_true,y_pred,y_score", *scored]))
    predictions = Predictions(path)
    predictions.rows()
    assert "'y_pred' is not the most probable class in 1 of 4 rows" in predictions.how()
