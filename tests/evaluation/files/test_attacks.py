"""Files by people who tried to break the reader: read as it is meant, or refused with a way that works."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials


def accuracy(path: Path, concern: ConcernSpec | None = None, **options: Any) -> float:
    if "labels" in options:
        (path.parent / "labels.csv").write_text(options["labels"])
        options["labels"] = path.parent / "labels.csv"
    result = score_models(open_models([path], ReadOptions(**options), concern), concern, intervals=False)
    return round(result.value("accuracy"), 3)


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


CONCERN = ConcernSpec(["red", "yellow", "green"])
FROM_1 = "is never 0 and never 3, so the first class may be 0 or 1: choose by --classes 0,1,2 or --classes 1,2,3"
SOLUTION = "id,target,Usage\n1,1,Public\n2,0,Private\n3,1,Public\n"
READ: dict[str, tuple[str, dict[str, Any], float]] = {
    "p.csv: P(no)": ("y_true,prob_no\nyes,.1\nno,.8\nno,.9\n", {}, 1.0),
    "p.csv: prob_0": ("y,prob_0\n1,.1\n0,.8\n0,.9\n", {}, 1.0),
    "p.csv: p0": ("y,p_0\n1,.1\n0,.8\n0,.9\n", {}, 1.0),
    "p.csv: prob_fake": ("label,prob_fake\nreal,.2\nfake,.7\nreal,.1\n", {}, 1.0),
    "p.csv: classes as the file calls them": (
        "R,A,G,label\n.7,.2,.1,R\n.2,.3,.5,A\n",
        {"concern": CONCERN, "classes": ["R", "A", "G"]},
        0.5,
    ),
    "p.csv: a label after row 100": (
        "red,yellow,green,label\n" + ".7,.2,.1,1\n" * 150 + ".2,.3,.5,3\n",
        {"concern": CONCERN, "classes": CONCERN.classes},
        1.0,
    ),
    "p.csv: percentages of one class": ("prob (%),label\n2.6,0\n98,1\n40,1\n0.7,0\n", {}, 0.75),
    "p.csv: percent signs": ("prob,label\n2.6%,0\n98%,1\n40%,1\n0.7%,0\n", {}, 0.75),
    "p.csv: a class of the labels": ("y_true,prob_benign\nmalignant,.3\nbenign,.8\n", {}, 1.0),
    "p.csv: indices of pandas": (",cat,dog\n0,.7,.3\n1,.2,.8\n", {"labels": ",label\n1,dog\n0,cat\n"}, 1.0),
    "p.jsonl: zero-shot": (
        lines(
            {"sequence": "x", "gold": "dog", "labels": ["dog", "cat"], "scores": [0.7, 0.3]},
            {"sequence": "y", "gold": "cat", "labels": ["cat", "dog"], "scores": [0.6, 0.4]},
        ),
        {},
        1.0,
    ),
    "p.json: columns of pandas": (
        json.dumps({"label": {"0": "a", "1": "b"}, "a": {"0": 0.7, "1": 0.4}, "b": {"0": 0.3, "1": 0.6}}),
        {},
        1.0,
    ),
    "p.json: rows of pandas in another order": (
        json.dumps({"label": {"39": "a", "2": "b"}, "a": {"39": 0.7, "2": 0.4}, "b": {"2": 0.6, "39": 0.3}}),
        {},
        1.0,
    ),
    "p.json: split of pandas": (
        json.dumps({"columns": ["label", "a", "b"], "index": [0, 1], "data": [["a", 0.7, 0.3], ["b", 0.4, 0.6]]}),
        {},
        1.0,
    ),
    "p.json: results": (
        json.dumps({"model": "m", "results": [{"label": "a", "pred": "a"}, {"label": "b", "pred": "b"}]}),
        {},
        1.0,
    ),
    "p.txt: rows of R in quotes": (
        '"cat" "big dog" "truth"\n"1" .05 .95 "big dog"\n"2" .85 .15 "cat"\n"3" .05 .95 "cat"\n',
        {},
        0.667,
    ),
    "p.txt: rows of R": ('"cat","dog","obs"\n"1",0.7,0.3,"cat"\n"2",0.4,0.6,"dog"\n', {}, 1.0),
    "p.csv: commas at the ends": ("label,a,b\na,.7,.3,\nb,.4,.6,\n", {}, 1.0),
    "p.csv: sep=": ("sep=;\nlabel;a;b\na;0,7;0,3\nb;0,4;0,6\n", {}, 1.0),
    "p.csv: quoted commas": ('label,a,b\na,"0,7","0,3"\nb,"0,4","0,6"\n', {}, 1.0),
    "p.csv: NA left out": ("label,cat,dog\ncat,NA,NA\ndog,.4,.6\nNA,.5,.5\n", {"missing": "drop"}, 1.0),
    "p.csv: NA left out of decisions": ("y_true,y_pred\ncat,cat\nNA,dog\ndog,dog\ncat,NA\n", {"missing": "drop"}, 1.0),
    "p.csv: one-hot beside predicted labels": ("label,target_cat,target_dog,pred\ncat,1,0,cat\ndog,0,1,cat\n", {}, 0.5),
    "p.csv: features beside predicted labels": ("target,site_A,site_B,pred\na,1,0,a\nb,0,1,a\n", {}, 0.5),
    "p.csv: scores called as labels are": ("id,target\n1,.9\n2,.2\n3,.4\n", {"labels": SOLUTION}, 0.667),
    "p.csv: scores of another rater": (
        "id,prob\n1,.9\n2,.2\n3,.4\n",
        {"labels": "id,label,prob\n1,1,.9\n2,0,.1\n3,1,.8\n"},
        0.667,
    ),
    "p.csv: a text called as scores are": (
        "id,cat,dog\n1,.9,.1\n2,.2,.8\n3,.4,.6\n",
        {"labels": "id,label,cat\n1,cat,x\n2,dog,y\n3,cat,z\n"},
        0.667,
    ),
    "p.json: predicted labels called as labels are": (
        '[{"label":"YES","score":0.97},{"label":"NO","score":0.9},{"label":"YES","score":0.6}]',
        {"labels": "label\nYES\nNO\nNO\n"},
        0.667,
    ),
    "p.csv: one-hot labels called as scores are": (
        "id,cat,dog,bird\n1,.9,.05,.05\n2,.2,.7,.1\n",
        {"labels": "id,cat,dog,bird,fold\n1,1,0,0,7\n2,0,0,1,8\n"},
        0.5,
    ),
}
"""By the name of the file and what it is: the content, the options, and the accuracy."""


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_it_is_meant(name: str, tmp_path: Path) -> None:
    content, options, expected = READ[name]
    path = tmp_path / name.split(":")[0]
    path.write_text(content)
    assert accuracy(path, **options) == expected


REFUSED: dict[str, tuple[str, str, dict[str, Any], float]] = {
    "a word for the negative class": (
        "label,p_healthy\n1,.2\n0,.9\n",
        "choose by --classes 0,1 or --classes 1,0, whose last class it is",
        {"classes": ["1", "0"]},
        1.0,
    ),
    "labels in another form": ("y_true,y_pred\nTrue,1\nFalse,0\n", "none is a label: write them alike", {}, -1),
    "labels that differ in case": (
        "label,pred\nCat,cat\ncat,cat\nDog,Dog\n",
        "has Cat, cat, which differ in case alone: write them alike, or, if all are classes, --classes Cat,Dog,cat",
        {"classes": ["Cat", "cat", "Dog"]},
        0.667,
    ),
    "a code beside two classes": (
        "id,label,prob\n1,1,.2\n2,2,.8\n3,9,.5\n4,2,.3\n",
        "row 3, column label: is '9' in 1 of 4 rows, the rarest of 3 labels, but one score 'prob' tells two",
        {},
        -1,
    ),
    "percentages that no name tells": (
        "label,prob\n0,2.6\n1,98\n1,40\n0,12\n",
        "row 1, column prob: must be a probability (--logits reads logits; divide percentages by 100), but is 2.6",
        {},
        -1,
    ),
    "one label": ("label,prob\nyes,.9\nyes,.4\n", "--classes yes,NAME makes", {"classes": ["no", "yes"]}, 0.5),
    "the confidence of a predicted label": (
        "gold,prob a\na,.9\na,.8\nb,.7\nb,.6\n",
        "has no score below 0.5, so 'gold' may be the predicted label",
        {"classes": ["b", "a"], "score_columns": ["prob a"]},
        0.5,
    ),
    "a gap that may be a class": (
        "y_true,y_pred\ncat,cat\nNA,dog\n",
        "column y_true: has 'NA': --missing drop leaves such rows out, or, if it is a class, --classes NA,cat,dog",
        {"classes": ["NA", "cat", "dog"]},
        0.5,
    ),
    "another form after row 100": (
        "y_true,y_pred\n" + "1,1\n0,0\n" * 60 + "1,0.4\n",
        "values of several kinds",
        {},
        -1,
    ),
    "the score of the predicted label": (
        "gold,answer,probability\n" + "yes,yes,.9\nno,no,.99\nno,yes,.45\nno,no,.3\n" * 3,
        "--decision-column answer measures it",
        {"decision_column": "answer"},
        0.75,
    ),
    "two families": (
        "label,rf_a,rf_b,svm_a,svm_b\na,.7,.3,.6,.4\nb,.2,.8,.3,.7\n",
        "--score-columns rf_a,rf_b or --score-columns svm_a,svm_b",
        {"score_columns": ["rf_a", "rf_b"]},
        1.0,
    ),
    "what always is the best class": (
        "winner,cat,dog\n" + "cat,.7,.3\ndog,.2,.8\n" * 5,
        "--label-column winner takes it for the labels",
        {"label_column": "winner"},
        1.0,
    ),
    "numbers of classes with names": (
        "label,mild,severe\n0,.7,.3\n1,.2,.8\n",
        "--score-columns mild,severe names the columns in the order of their classes",
        {"score_columns": ["mild", "severe"]},
        1.0,
    ),
    "the confidence of a label": ("label,confidence\n1,.9\n0,.8\n", "name them by --score-columns", {}, -1),
    "distances": ("label,distance_cat,distance_dog\ncat,.1,.9\ndog,.8,.2\n", "name them by --score-columns", {}, -1),
    "a file of labels without known names": (
        "id,target\n1,.9\n2,.2\n3,.4\n",
        "labels.csv: has no column of labels that is known by its name; it has id, target_label_2, why: --label-column",
        {"labels": "id,target_label_2,why\n1,1,b\n2,0,d\n3,1,f\n", "label_column": "target_label_2", "by": ["why"]},
        0.667,
    ),
    "unknown scores beside a file of labels": (
        "id,x\n1,.9\n2,.2\n3,.4\n",
        "p.csv: has no columns of scores or predicted labels that are known by their names; it has id, x: name them by",
        {"labels": SOLUTION, "score_columns": ["x"]},
        0.667,
    ),
    "labels of two classes of three": (
        "red,yellow,green,label\n.7,.2,.1,1\n.2,.3,.5,2\n",
        f"{FROM_1}, with --score-columns red,yellow,green",
        {"concern": CONCERN, "classes": ["1", "2", "3"]},
        0.5,
    ),
    "labels of two classes of three, without a header": (
        "1,.7,.2,.1\n2,.2,.3,.5\n" * 5,
        FROM_1,
        {"concern": CONCERN, "classes": ["1", "2", "3"]},
        0.5,
    ),
    "labels of two classes of three, without a header or a concern": (
        "1,.7,.2,.1\n2,.2,.3,.5\n" * 5,
        FROM_1,
        {"classes": ["1", "2", "3"]},
        0.5,
    ),
    "predicted labels of two classes of three": (
        "label,pred\n1,1\n2,1\n",
        FROM_1,
        {"concern": CONCERN, "classes": ["0", "1", "2"]},
        0.5,
    ),
    "1 is yes": (
        "yes,no,label\n.7,.3,1\n.2,.8,2\n",
        "which class is 1? --score-columns yes,no names the columns in the order of their classes",
        {"score_columns": ["yes", "no"]},
        1.0,
    ),
    "lists of the best classes": (
        "label,probs\n" + '0,"[.7,.2,.1]"\n1,"[.6,.3,.1]"\n2,"[.8,.1,.1]"\n' * 10,
        "lists that always fall",
        {},
        -1,
    ),
}
"""By what it is: the content, a part of the refusal, the options that it names, and the accuracy with them."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mean_two_things_is_refused_with_a_way(name: str, tmp_path: Path) -> None:
    content, message, options, expected = REFUSED[name]
    path = tmp_path / "p.csv"
    path.write_text(content)
    with pytest.raises(PredictionsError) as refused:
        accuracy(path, **{name: options[name] for name in ("labels", "concern") if name in options})
    assert message in str(refused.value)
    if expected >= 0:
        assert accuracy(path, **options) == expected


def test_labels_with_ids_of_another_name_are_not_matched_by_their_order(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("image,cat,dog\nx,.7,.3\ny,.2,.8\n")
    with pytest.raises(PredictionsError, match=r"has the ids file, and p\.csv image: name a column of both"):
        accuracy(tmp_path / "p.csv", labels="file,label\ny,dog\nx,cat\n")


def test_labels_are_not_scored_against_themselves(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,x\n1,.9\n2,.2\n3,.4\n")
    for option in ({"score_columns": ["target"]}, {"decision_column": "target"}):
        with pytest.raises(PredictionsError, match="column target: cannot be labels and predictions, too"):
            accuracy(tmp_path / "p.csv", labels=SOLUTION, **option)


def test_models_with_other_ids_are_not_compared_row_by_row(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for first, path in enumerate(paths):
        path.write_text("id,label,cat,dog\n" + "".join(f"{first + row},cat,.7,.3\n" for row in range(3)))
    with pytest.raises(PredictionsError, match=r"b\.csv, row 1, column id: must be '0' as in .*a\.csv, but is '1'"):
        score_models(open_models(paths, ReadOptions()), None)


def test_labels_of_arrays_count_from_1_where_one_is_the_number_of_classes(tmp_path: Path) -> None:
    for labels, options in (([1, 0, 1], {}), ([2, 1, 2], {}), ([1, -1, 1], {"classes": ["-1", "1"]})):
        np.savez(tmp_path / "p.npz", probs=np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]), y=np.array(labels))
        assert accuracy(tmp_path / "p.npz", **options) == 0.667
    with pytest.raises(PredictionsError, match=r"has the labels -1, 1, .*: choose by --classes=-1,1"):
        accuracy(tmp_path / "p.npz")


def test_arrays_of_one_probability_and_of_labels_with_a_column_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", probs=np.array([0.9, 0.2, 0.4]), y=np.array([1, 0, 1]))
    assert accuracy(tmp_path / "one.npz") == 0.667
    np.savez(tmp_path / "two.npz", probs=np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]), y=np.array([[1], [0], [1]]))
    assert accuracy(tmp_path / "two.npz") == 0.667


def test_lists_of_scores_by_label_in_parquet_are_read_as_in_json(tmp_path: Path) -> None:
    scores = [
        [{"label": "b", "score": 0.8}, {"label": "a", "score": 0.2}],
        [{"label": "a", "score": 1.0}, {"label": "b", "score": 0.0}],
    ]
    pyarrow.parquet.write_table(pyarrow.table({"gold": ["b", "a"], "scores": scores}), tmp_path / "p.parquet")
    assert accuracy(tmp_path / "p.parquet") == 1.0


def test_rows_that_are_left_out_are_counted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,cat,dog\ncat,,\ndog,.4,.6\n")
    predictions = Predictions(tmp_path / "p.csv", ReadOptions(missing="drop"))
    assert len(predictions.rows().scores) == 1
    assert predictions.notes == [
        "1 row without a label, a score, a cluster or a unit left out: values are those of the others."
    ]


def test_logits_that_look_like_probabilities_are_doubted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,cat,dog\ncat,.6,.4\ndog,.4,.6\n")
    predictions = Predictions(tmp_path / "p.csv", ReadOptions(from_logits=True))
    with pytest.warns(UserWarning, match="look like probabilities, but are read as logits: leave out --logits"):
        predictions.rows()


def test_names_of_classes_beside_arrays_are_taken(tmp_path: Path) -> None:
    probs = np.array([[0.9, 0.1], [0.3, 0.7], [0.4, 0.6]])
    np.savez(tmp_path / "p.npz", preds=probs, target=np.array(["dog", "cat", "dog"]), classes=np.array(["dog", "cat"]))
    assert Predictions(tmp_path / "p.npz").how() == 'p.npz: labels "target"; lists of scores "preds" = classes dog, cat'
    assert accuracy(tmp_path / "p.npz") == 0.667


def test_trials_without_a_cluster_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("score,label,speaker\n0.9,1,a\n0.1,0,b\n0.5,0,\n")
    with pytest.raises(PredictionsError, match=r"row 3, column speaker: is missing \(--missing drop leaves"):
        read_trials(tmp_path / "s.csv", ReadOptions(cluster="speaker"), lambda _: None)
    table = read_trials(tmp_path / "s.csv", ReadOptions(cluster="speaker", missing="drop"), lambda _: None)
    assert table.trials.scores.tolist() == [0.9, 0.1]
