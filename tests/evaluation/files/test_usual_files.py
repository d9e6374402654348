"""Files as people have them: an index, ids, decisions, other names of the labels, rounded probabilities."""

import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
from pyarrow import csv as arrow_csv

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation.classifier_files import ModelFiles, open_models, score_models
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.columns import ColumnOptions
from mpcs_torch.evaluation.files.predictions import Predictions, ReadOptions
from tests.evaluation.files.alone import score

PLAIN = "red,green,target\n0.7,0.3,red\n0.4,0.6,red\n0.1,0.9,green\n"
USUAL = """,id,Label,red,green,pred,site
0,a7,red,0.7,0.3,red,north
1,a9,red,0.4,0.6,green,
5,b1,green,0.1,0.9,green,south
"""
NAMED = ConcernSpec(["red", "green"])


def scored(
    path: Path, *, concern: ConcernSpec | None = None, options: ColumnOptions | None = None, from_logits: bool = False
) -> ClassifierScores:
    names = None if concern is None else concern.classes
    opened = Predictions(path, from_logits=from_logits, class_names=names, columns=options or ColumnOptions())
    return score(opened, concern)


def as_parquet(path: Path) -> Path:
    table = arrow_csv.read_csv(path)
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("concern", [None, NAMED])
def test_what_is_no_class_is_left_out_with_a_note(tmp_path: Path, suffix: str, concern: ConcernSpec | None) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PLAIN)
    plain = scored(path, concern=concern)
    path.write_text(USUAL)
    found = scored(path if suffix == ".csv" else as_parquet(path), concern=concern)
    assert (found.values, found.class_names) == (pytest.approx(plain.values), ["red", "green"])
    (note,) = found.file_notes
    for told in ("'' (an index)", "'id' (ids; --id-column", "'pred' (decisions, which", "'site' (text)"):
        assert told in note
    assert not plain.file_notes


def test_options_say_what_names_do_not(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("red,green,diagnosis,age,label\n0.7,0.3,red,45,1\n0.4,0.6,red,50,0\n")
    options = ColumnOptions("diagnosis", ["age", "label"])
    assert scored(path, options=options).values["accuracy"] == 0.5
    assert scored(path, concern=NAMED, options=options).values["accuracy"] == 0.5
    path.write_text("id,red,green,pred,label,y_true\n1,0.7,0.3,0,0,1\n2,0.4,0.6,1,1,1\n")
    assert scored(path, options=ColumnOptions("label", ["y_true"])).values["accuracy"] == 1
    assert scored(path, options=ColumnOptions(None, ["label"])).values["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "label,y_true,a,b\n0,1,0.5,0.5\n",
            "several columns that may be the labels, ['label', 'y_true']: name it with",
        ),
        ("diagnosis,a,b\n0,0.5,0.5\n", "must have a column target, or target_NAME for each of the classes"),
        ("diagnosis,a,b\n0,0.5,0.5\n", "; --target-column COLUMN names another"),
        (
            "target,a,b,age\n0,0.5,0.5,45\n",
            "row 1, column age: must be a probability (for logits pass --logits), but is 45; if it is no class, pass "
            "--ignore age",
        ),
        ("target,a,b,sure\n0,0.5,0.5,0.5\n", "for columns that are no classes, --ignore COLUMN)"),
        (",a,b,target\n0.5,0.5,0.5,0\n", "but has ['', 'a', 'b']; for a column that is no class, pass --ignore"),
        ("target,a,b\nred,0.5,0.5\n", "must be a class index or one of ['a', 'b'], but is 'red'"),
        ("target,Red,green\nred,0.5,0.5\n", "but is 'red'; 'Red' and 'red' differ in case: write them alike"),
        (
            "target,prob_red,prob_green\nred,0.5,0.5\n",
            "but is 'red'; name the column 'prob_red' just 'red', and the others likewise",
        ),
    ],
)
def test_errors_name_the_column_and_the_option(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        scored(tmp_path / "p.csv")


def test_a_column_that_is_no_class_of_the_concern_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("target,red,green,sure\nred,0.7,0.3,0.7\n")
    with pytest.raises(PredictionsError, match=r"must be named after the classes .* pass --ignore COLUMN"):
        scored(tmp_path / "p.csv", concern=NAMED)
    (tmp_path / "p.csv").write_text("target,Red,green\nred,0.7,0.3\n")
    with pytest.raises(PredictionsError, match=r"; 'Red' and 'red' differ in case: write them alike"):
        scored(tmp_path / "p.csv", concern=NAMED)
    missing = ColumnOptions("truth", ["sure"])
    with pytest.raises(PredictionsError, match="has no column 'truth' of --target-column"):
        scored(tmp_path / "p.csv", options=missing)
    with pytest.raises(PredictionsError, match="has no column 'age' of --ignore, but"):
        open_models(ModelFiles([tmp_path / "p.csv"], ReadOptions(columns=ColumnOptions(ignored=["age"]))), None)
    (tmp_path / "p.npz").write_bytes(b"")
    with pytest.raises(PredictionsError, match="has no columns: --id-column is for csv and parquet files"):
        open_models(ModelFiles([tmp_path / "p.npz"], ReadOptions(columns=ColumnOptions(identifier="id"))), None)


def test_rounded_probabilities_are_divided_by_their_sum(tmp_path: Path) -> None:
    probs = torch.rand(200, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    probs /= probs.sum(dim=1, keepdim=True)
    rows = [",".join(["0", *(f"{p:.2f}" for p in row)]) for row in probs.tolist()]
    (tmp_path / "p.csv").write_text("\n".join(["target,0,1,2,3,4", *rows]) + "\n")
    found = scored(tmp_path / "p.csv")
    (note,) = found.file_notes
    assert note.startswith("The probabilities are rounded to 2 decimals: ")
    assert note.endswith(" rows sum to 0.98 to 1.02, and were divided by their sum.")
    assert found.values["brier_score"] == pytest.approx(_brier(probs), abs=0.01)
    assert not any("rounded" in note for note in scored(tmp_path / "p.csv", from_logits=True).file_notes)


@pytest.mark.parametrize(
    "row",
    ["0.5,0.4,0", "0.9,0.8,0", "0.71,0.27,0", "0.01,0.02,0", "0.333,0.333,0", "0,0,0", "1.00,0.02,1"],
)
def test_sums_that_rounding_does_not_explain_are_refused(tmp_path: Path, row: str) -> None:
    (tmp_path / "p.csv").write_text(f"a,b,target\n0.25,0.75,1\n{row}\n0.66,0.33,0\n")  # the last is explained
    with pytest.raises(PredictionsError, match=r"row 2: the probabilities must sum to 1, but sum to .*pass --logits"):
        scored(tmp_path / "p.csv")


def matched(paths: list[Path]) -> None:
    files = ModelFiles(paths, ReadOptions(columns=ColumnOptions(identifier="id")))
    found = score_models(files, open_models(files, None), None)
    assert found.models["A"].values == pytest.approx(found.models["B"].values)
    equal = found.comparisons[0].paired
    assert (equal.low, equal.high) == pytest.approx((-0.602, 0.602), abs=1e-3)


def test_rows_of_several_files_are_matched_by_id(tmp_path: Path) -> None:
    header, *rows = ["id,a,b,target", "x1,0.7,0.3,a", "x2,0.2,0.8,b", "x3,0.6,0.4,b", "x4,0.9,0.1,a"]

    def written(name: str, order: list[int], extra: str = "") -> Path:
        (tmp_path / name).write_text("\n".join([header, *(rows[place] for place in order)]) + "\n" + extra)
        return tmp_path / name

    first, other = written("A.csv", [0, 1, 2, 3]), written("B.csv", [3, 1, 0, 2])
    matched([first, other])
    other.rename(tmp_path / "B.txt")
    written("B.csv", [2, 3, 0, 1])
    as_parquet(tmp_path / "B.csv")
    matched([first, tmp_path / "B.parquet"])
    cases = [
        (written("C.csv", [3, 1]), r"lacks 2 rows of .*A.csv: those with the ids \['x1', 'x3'\]"),
        (written("D.csv", [0, 1, 2, 3], "x9,0.5,0.5,a\n"), "row 5, column id: .*A.csv has no row with the id 'x9'"),
        (written("E.csv", [0, 1, 1]), "row 3, column id: each id must name one row, but 'x2' appears again"),
        (written("F.csv", [0], ",0.5,0.5,a\n"), "row 2, column id: must be the id of the row, but is missing"),
        (written("G.csv", [0], "x2,0.5,0.5,a\n"), "row 2: the label must be 'b' as in .* matched by their ids"),
    ]
    for path, message in cases:
        with pytest.raises(PredictionsError, match=message):
            matched([first, path])
    files = ModelFiles([first, tmp_path / "B.csv"])
    with pytest.raises(PredictionsError, match=r"rows are matched in order \(--id-column COLUMN matches them by ids\)"):
        score_models(files, open_models(files, None), None)


def _brier(probs: torch.Tensor) -> float:
    truth = torch.zeros_like(probs)
    truth[:, 0] = 1
    return float((probs - truth).square().sum(dim=1).mean())
