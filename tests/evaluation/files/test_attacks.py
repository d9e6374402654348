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


SOLUTION = "id,target,Usage\n1,1,Public\n2,0,Private\n3,1,Public\n"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("label,prediction\na,a\nb,a\nlabel,prediction\na,b\n", "repeated_header"),
        ("[0.1  0.9][0 1]\n[0.8  0.2][1 0]\n", "printed_arrays"),
    ],
)
def test_what_programs_leave_in_files_is_refused_by_its_name(
    content: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "p.txt").write_text(content)
    with refused_file(f"p.txt: {code}"):
        accuracy(tmp_path / "p.txt")


def test_a_file_of_labels_names_its_column(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,target\n1,.9\n2,.2\n3,.4\n")
    labels = "id,target_label_2,why\n1,1,b\n2,0,d\n3,1,f\n"
    with refused_file("labels.csv: column_of_labels"):
        accuracy(tmp_path / "p.csv", labels=labels)
    assert (
        accuracy(
            tmp_path / "p.csv", labels=labels, label_column="target_label_2", by=["why"]
        )
        == 0.667
    )


def test_labels_with_ids_of_another_name_are_matched_by_their_values(
    tmp_path: Path,
) -> None:
    (tmp_path / "p.csv").write_text("image,cat,dog\nx,.7,.3\ny,.2,.8\n")
    assert accuracy(tmp_path / "p.csv", labels="file,label\ny,dog\nx,cat\n") == 1.0
    with refused_file("labels.csv: rows_of_file", id="x"):
        accuracy(tmp_path / "p.csv", labels="file,label\ny,dog\nz,cat\n")
    with refused_file("ids_of_both", ids=["file"]):
        accuracy(tmp_path / "p.csv", labels="file,label\na,dog\nz,cat\n")
    content = "id,image,cat,dog\n0,x,.7,.3\n1,y,.2,.8\n2,z,.2,.8\n"
    (tmp_path / "p.csv").write_text(content)
    labels = "index,file,label\n0,y,dog\n1,x,cat\n2,z,dog\n"
    with refused_file("ids_of_both", ids=["index", "file"]):  # orders differ in two rows
        accuracy(tmp_path / "p.csv", labels=labels)


def test_labels_are_not_scored_against_themselves(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,x\n1,.9\n2,.2\n3,.4\n")
    for option in ({"score_columns": ["target"]}, {"decision_column": "target"}):
        with refused_file("labels_alone, column target"):
            accuracy(tmp_path / "p.csv", labels=SOLUTION, **option)


def test_labels_of_arrays_count_from_1_where_one_is_the_number_of_classes(
    tmp_path: Path,
) -> None:
    for labels, options in (
        ([1, 0, 1], {}),
        ([2, 1, 2], {}),
        ([1, -1, 1], {"classes": ["-1", "1"]}),
    ):
        np.savez(
            tmp_path / "p.npz",
            probs=np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]),
            y=np.array(labels),
        )
        assert accuracy(tmp_path / "p.npz", **options) == 0.667
    with pytest.raises(UnclearFileError) as refused:
        accuracy(tmp_path / "p.npz")
    assert [offer.words for offer in refused.value.offers] == ["--classes=-1,1"]


def test_arrays_of_one_probability_and_of_labels_with_a_column_are_read(
    tmp_path: Path,
) -> None:
    np.savez(tmp_path / "one.npz", probs=np.array([0.9, 0.2, 0.4]), y=np.array([1, 0, 1]))
    assert accuracy(tmp_path / "one.npz") == 0.667
    np.savez(
        tmp_path / "two.npz",
        probs=np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]),
        y=np.array([[1], [0], [1]]),
    )
    assert accuracy(tmp_path / "two.npz") == 0.667


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


def test_names_of_classes_beside_arrays_are_taken(tmp_path: Path) -> None:
    probs = np.array([[0.9, 0.1], [0.3, 0.7], [0.4, 0.6]])
    np.savez(
        tmp_path / "p.npz",
        preds=probs,
        target=np.array(["dog", "cat", "dog"]),
        classes=np.array(["dog", "cat"]),
    )
    assert (
        Predictions(tmp_path / "p.npz").how()
        == 'p.npz: labels "target"; lists of scores "preds" = classes dog, cat'
    )
    assert accuracy(tmp_path / "p.npz") == 0.667


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


def test_files_that_are_only_pointers_say_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    )
    with refused_file("pointer"):
        Predictions(tmp_path / "p.csv")


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
