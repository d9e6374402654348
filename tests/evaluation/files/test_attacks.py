"""Files by people who tried to break the reader: read as it is meant, or refused with a way that works."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from tests.refused import refused_file


def accuracy(path: Path, **options: Any) -> float:
    if "labels" in options:
        (path.parent / "labels.csv").write_text(options["labels"])
        options["labels"] = path.parent / "labels.csv"
    result = score_models(
        open_models([path], ReadOptions(**options)), None, intervals=False
    )
    return round(result.value("accuracy"), 3)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("label,prediction\na,a\nb,a\nlabel,prediction\na,b\n", "repeated_header"),
        ("[0.1  0.9][0 1]\n[0.8  0.2][1 0]\n", "printed_arrays"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "pointer"),
    ],
)
def test_what_programs_leave_in_files_is_refused_by_its_name(
    content: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "p.txt").write_text(content)
    with refused_file(f"p.txt: {code}"):
        accuracy(tmp_path / "p.txt")


SCORES, IMAGES = "id,target\n1,.9\n2,.2\n3,.4\n", "image,cat,dog\nx,.7,.3\ny,.2,.8\n"
TWO_IDS = "id,image,cat,dog\n0,x,.7,.3\n1,y,.2,.8\n2,z,.2,.8\n"
SOLUTION = "id,target,Usage\n1,1,Public\n2,0,Private\n3,1,Public\n"


@pytest.mark.parametrize(
    ("content", "labels", "options", "refusal"),
    [
        (
            SCORES,
            "id,target_2,why\n1,1,b\n2,0,d\n3,1,f\n",
            {},
            "labels.csv: column_of_labels",
        ),
        (IMAGES, "file,label\ny,dog\nz,cat\n", {}, "labels.csv: rows_of_file"),
        (IMAGES, "file,label\na,dog\nz,cat\n", {}, "ids_of_both"),
        # The orders differ in two rows.
        (TWO_IDS, "index,file,label\n0,y,dog\n1,x,cat\n2,z,dog\n", {}, "ids_of_both"),
        (
            "id,x\n1,.9\n2,.2\n3,.4\n",
            SOLUTION,
            {"score_columns": ["target"]},
            "labels_alone, column target",
        ),
        (
            "id,x\n1,.9\n2,.2\n3,.4\n",
            SOLUTION,
            {"decision_column": "target"},
            "labels_alone, column target",
        ),
    ],
)
def test_labels_that_do_not_belong_to_the_scores_are_refused(
    content: str, labels: str, options: dict[str, Any], refusal: str, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(content)
    with refused_file(refusal):
        accuracy(tmp_path / "p.csv", labels=labels, **options)


PROBS = [[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ({"probs": PROBS, "y": [1, 0, 1]}, {}),
        ({"probs": PROBS, "y": [2, 1, 2]}, {}),  # one is the number of classes
        ({"probs": PROBS, "y": [1, -1, 1]}, {"classes": ["-1", "1"]}),
        ({"probs": [0.9, 0.2, 0.4], "y": [1, 0, 1]}, {}),
        ({"probs": PROBS, "y": [[1], [0], [1]]}, {}),
        ({"preds": PROBS, "y": ["cat", "dog", "cat"], "classes": ["dog", "cat"]}, {}),
    ],
)
def test_arrays_are_read_as_they_are_meant(
    arrays: dict[str, list[Any]], options: dict[str, Any], tmp_path: Path
) -> None:
    values = {name: np.array(array) for name, array in arrays.items()}
    np.savez(tmp_path / "p.npz", **values)  # type: ignore[arg-type]
    assert accuracy(tmp_path / "p.npz", **options) == 0.667
    if options:
        with pytest.raises(UnclearFileError) as refused:
            accuracy(tmp_path / "p.npz")
        assert [offer.words for offer in refused.value.offers] == ["--classes=-1,1"]


def test_lists_of_scores_by_label_in_parquet_are_read_as_in_json(tmp_path: Path) -> None:
    scores = [
        [{"label": "b", "score": 0.8}, {"label": "a", "score": 0.2}],
        [{"label": "a", "score": 1.0}, {"label": "b", "score": 0.0}],
    ]
    pyarrow.parquet.write_table(
        pyarrow.table({"gold": ["b", "a"], "scores": scores}), tmp_path / "p.parquet"
    )
    assert accuracy(tmp_path / "p.parquet") == 1.0


def test_logits_that_look_like_probabilities_are_doubted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,cat,dog\ncat,.6,.4\ndog,.4,.6\n")
    predictions = Predictions(tmp_path / "p.csv", ReadOptions(from_logits=True))
    with pytest.warns(
        UserWarning,
        match="look like probabilities, but are read as logits: leave out --logits",
    ):
        predictions.rows()


def test_what_stands_beside_scores_is_said(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,pred,a,b\na,b,1,0\nb,b,.4,.6\nb,b,1,0\n")
    predictions = Predictions(tmp_path / "p.csv")
    predictions.rows()
    assert (
        "'pred' is not the most probable class in 2 of 3 rows (--decision-column pred"
        in predictions.how()
    )
    assert predictions.notes == [
        "The label has the probability 0 in 1 of 3 rows, in a file with 1 decimals."
    ]


def test_columns_with_the_names_of_models_are_these_models(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,ours,baseline,half_prob\n1,1,0,.9\n0,1,0,.1\n")
    options = ReadOptions(models=["ours", "baseline", "half"])
    models = score_models(
        open_models([tmp_path / "p.csv"], options), None, intervals=False
    ).models
    assert [each.values["accuracy"] for each in models.values()] == [0.5, 0.5, 1.0]


def test_scores_of_the_other_class_are_doubted(tmp_path: Path) -> None:
    rows = [f"{row % 2},{(0.2 if row % 2 else 0.7) + row / 1000:.3f}" for row in range(60)]
    (tmp_path / "p.csv").write_text("\n".join(["label,prob_dead", *rows]) + "\n")
    warned = score_models(open_models([tmp_path / "p.csv"], ReadOptions()), None).warnings()
    assert any("E6" in str(each) and "--classes 1,0" in str(each) for each in warned)
    turned = score_models(
        open_models([tmp_path / "p.csv"], ReadOptions(classes=["1", "0"])), None
    )
    assert turned.value("accuracy") == 1
    assert not any("E6" in str(each) for each in turned.warnings())
    (tmp_path / "p.csv").write_text(
        "\n".join(["label,prob_1", *rows]) + "\n"
    )  # no option turns what a name says
    named = score_models(open_models([tmp_path / "p.csv"], ReadOptions()), None).warnings()
    assert any("E6" in str(each) and "--classes" not in str(each) for each in named)


def test_trials_without_a_cluster_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("score,label,speaker\n0.9,1,a\n0.1,0,b\n0.5,0,\n")
    with refused_file("has_name, row 3, column speaker"):
        read_trials(tmp_path / "s.csv", ReadOptions(cluster="speaker"), lambda _: None)
    table = read_trials(
        tmp_path / "s.csv", ReadOptions(cluster="speaker", missing="drop"), lambda _: None
    )
    assert table.trials.scores.tolist() == [0.9, 0.1]
