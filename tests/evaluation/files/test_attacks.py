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
from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from tests.refused import refused_file


def accuracy(path: Path, concern: ConcernSpec | None = None, **options: Any) -> float:
    if "labels" in options:
        (path.parent / "labels.csv").write_text(options["labels"])
        options["labels"] = path.parent / "labels.csv"
    result = score_models(
        open_models([path], ReadOptions(**options), concern), concern, intervals=False
    )
    return round(result.value("accuracy"), 3)


def lines(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


CONCERN = ConcernSpec(["red", "yellow", "green"])
SOLUTION = "id,target,Usage\n1,1,Public\n2,0,Private\n3,1,Public\n"
READ: dict[str, tuple[str, dict[str, Any], float]] = {
    "p.csv: a column of 0 and 1 for each column of scores": (
        "p1,p2,p3,t1,t2,t3\n.7,.2,.1,1,0,0\n.2,.7,.1,0,0,1\n.1,.8,.1,0,1,0\n",
        {},
        0.667,
    ),
    "p.csv: the real label beside that of a model": (
        "real_label,model_label,probability_0,probability_1\n1,1,.2,.8\n0,1,.3,.7\n0,0,.9,.1\n",
        {},
        0.667,
    ),
    "p.csv: labels in a file with the columns of predictions": (
        "title,body,stance\nx,1,for\ny,2,against\nz,3,for\n",
        {
            "labels": "title,body,stance\nx,1,for\ny,2,for\nz,3,for\n",
            "decision_column": "stance",
        },
        0.667,
    ),
    "p.csv: columns of which each names one label": (
        "dir_true,p_stable,p_buff_dir,p_nerf_dir\nstable,.7,.2,.1\nbuff,.2,.7,.1\nnerf,.1,.6,.3\n",
        {},
        0.667,
    ),
    "p.csv: names of scikit-learn": ("y_test,y_pred\n1,1\n0,1\n0,0\n", {}, 0.667),
    "p.csv: what is predicted": (
        "image,predict,true_label\na,1,1\nb,1,0\nc,0,0\n",
        {},
        0.667,
    ),
    "p.csv: whether predictions are right": (
        "y_true,y_pred,pred_correct\n1,1,1\n0,1,0\n0,0,1\n",
        {},
        0.667,
    ),
    "p.csv: all rows of a test set": ("all_labels,all_preds\n1,1\n0,1\n0,0\n", {}, 0.667),
    "p.csv: a fraction after row 100": (
        "y_true,y_pred\n" + "1,1\n0,0\n" * 60 + "1,0.4\n",
        {},
        0.992,
    ),
    "p.csv: sorted by a probability": (
        "label,risk_score\n"
        + "".join(f"{int(n % 4 != 0)},{1 - n / 300:.3f}\n" for n in range(300)),
        {},
        0.497,
    ),
    "p.csv: labels of another case in sorted rows": (
        "true_label,prob_normal,prob_ill\n" + "NORMAL,.9,.1\n" * 110 + "ILL,.6,.4\n",
        {},
        0.991,
    ),
    "p.csv: decimal commas of predicted labels": (
        "label;pred;x\n1;1,0;0,5\n0;1,0;0,7\n0;0,0;0,2\n",
        {},
        0.667,
    ),
    "p.csv: compound words": (
        "RaceID,winprobability,win_classprediction,win_groundtruth\n1,.6,1,1\n1,.7,1,0\n2,.2,0,0\n",
        {},
        0.667,
    ),
    "p.csv: a log-likelihood ratio beside predicted labels": (
        "label,prediction,score\na,a,10.9\nb,a,3.1\nb,b,-4.2\n",
        {},
        0.667,
    ),
    "p.csv: numbers of rows beside lists of labels": (
        ',truth,cat,dog\n0,"[1, 0]",.8,.2\n1,"[0, 1]",.6,.4\n2,"[1, 0]",.9,.1\n',
        {},
        0.667,
    ),
    "p.csv: sentences beside a probability": (
        "label,risk_score,verdict\nspam,.9,A scam.\nham,.6,A plain letter.\nham,.1,An order.\n",
        {"classes": ["ham", "spam"]},
        0.667,
    ),
    "p.csv: question marks": (
        "label,prediction\na,a\n?,b\nb,b\nb,a\n",
        {"missing": "drop"},
        0.667,
    ),
    "p.arff: predictions of OpenML": (
        "% made up\n@RELATION p\n@ATTRIBUTE row_id NUMERIC\n@attribute 'confidence.a' numeric\n"
        "@ATTRIBUTE confidence.b NUMERIC\n@ATTRIBUTE prediction {a, b}\n@ATTRIBUTE correct {a, b}\n\n@DATA\n"
        "0,0.7,0.3,a,a\n1,0.6,0.4,a,b\n2,0.1,0.9,b,b\n",
        {},
        0.667,
    ),
    "p.csv: predictions of Weka": (
        "inst#,actual,predicted,error,distribution\n1,2:b,2:b,,0.2,*0.8\n2,1:a,2:b,+,0.4,*0.6\n3,1:a,1:a,,*1,0\n",
        {},
        0.667,
    ),
    "p.json: lists of one label": (
        json.dumps(
            [
                {"pred_scores": [0.7, 0.3], "gt_label": [0]},
                {"pred_scores": [0.6, 0.4], "gt_label": [1]},
            ]
        ),
        {},
        0.5,
    ),
    "p.jsonl: log likelihoods of choices": (
        lines(
            {"target": 0, "acc": 1.0, "filtered_resps": [[-0.5, True], [-1.5, False]]},
            {"target": 1, "acc": 0.0, "filtered_resps": [[-0.7, False], [-0.9, False]]},
        ),
        {"score_columns": ["filtered_resps"], "from_logits": True},
        0.5,
    ),
    "p.csv: ids of other names": (
        "image_id,cat,dog\n7,.9,.1\n8,.2,.8\n",
        {"labels": "id,diagnosis\n8,dog\n7,dog\n"},
        0.5,
    ),
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
    "p.csv: percentages of one class": (
        "prob (%),label\n2.6,0\n98,1\n40,1\n0.7,0\n",
        {},
        0.75,
    ),
    "p.csv: percent signs": ("prob,label\n2.6%,0\n98%,1\n40%,1\n0.7%,0\n", {}, 0.75),
    "p.csv: a class of the labels": (
        "y_true,prob_benign\nmalignant,.3\nbenign,.8\n",
        {},
        1.0,
    ),
    "p.csv: indices of pandas": (
        ",cat,dog\n0,.7,.3\n1,.2,.8\n",
        {"labels": ",label\n1,dog\n0,cat\n"},
        1.0,
    ),
    "p.jsonl: zero-shot": (
        lines(
            {
                "sequence": "x",
                "gold": "dog",
                "labels": ["dog", "cat"],
                "scores": [0.7, 0.3],
            },
            {
                "sequence": "y",
                "gold": "cat",
                "labels": ["cat", "dog"],
                "scores": [0.6, 0.4],
            },
        ),
        {},
        1.0,
    ),
    "p.json: columns of pandas": (
        json.dumps(
            {
                "label": {"0": "a", "1": "b"},
                "a": {"0": 0.7, "1": 0.4},
                "b": {"0": 0.3, "1": 0.6},
            }
        ),
        {},
        1.0,
    ),
    "p.json: rows of pandas in another order": (
        json.dumps(
            {
                "label": {"39": "a", "2": "b"},
                "a": {"39": 0.7, "2": 0.4},
                "b": {"2": 0.6, "39": 0.3},
            }
        ),
        {},
        1.0,
    ),
    "p.json: split of pandas": (
        json.dumps(
            {
                "columns": ["label", "a", "b"],
                "index": [0, 1],
                "data": [["a", 0.7, 0.3], ["b", 0.4, 0.6]],
            }
        ),
        {},
        1.0,
    ),
    "p.json: columns beside a result": (
        json.dumps(
            {
                "accuracy": 0.5,
                "classes": ["a", "b"],
                "y_true": [0, 1, 1],
                "y_prob": [[0.7, 0.3], [0.4, 0.6], [0.8, 0.2]],
            }
        ),
        {},
        0.667,
    ),
    "p.json: one record": (
        json.dumps({"label": "b", "labels": ["b", "a"], "scores": [0.6, 0.4]}),
        {},
        1.0,
    ),
    "p.json: results": (
        json.dumps(
            {
                "model": "m",
                "results": [{"label": "a", "pred": "a"}, {"label": "b", "pred": "b"}],
            }
        ),
        {},
        1.0,
    ),
    "p.txt: rows of R in quotes": (
        '"cat" "big dog" "truth"\n"1" .05 .95 "big dog"\n"2" .85 .15 "cat"\n"3" .05 .95 "cat"\n',
        {},
        0.667,
    ),
    "p.txt: rows of R": (
        '"cat","dog","obs"\n"1",0.7,0.3,"cat"\n"2",0.4,0.6,"dog"\n',
        {},
        1.0,
    ),
    "p.csv: commas at the ends": ("label,a,b\na,.7,.3,\nb,.4,.6,\n", {}, 1.0),
    "p.csv: sep=": ("sep=;\nlabel;a;b\na;0,7;0,3\nb;0,4;0,6\n", {}, 1.0),
    "p.csv: percentages with decimal commas": (
        "label;a;b\na;70,5 %;29,5 %\nb;60,0%;40,0%\n",
        {},
        0.5,
    ),
    "p.tsv: quotes among the words of a sentence": (
        "word\ttrue\tpred\n" + '"\tO\tO\nb\tP\tO\n"\tO\tO\nd\tP\tP\n' * 2,
        {},
        0.75,
    ),
    "p.tsv: line breaks in quotes": (
        'text\ttrue\tpred\n"a\nb"\tO\tO\n"c\td\n"\tP\tO\n',
        {},
        0.5,
    ),
    "p.csv: quoted commas": ('label,a,b\na,"0,7","0,3"\nb,"0,4","0,6"\n', {}, 1.0),
    "p.csv: NA left out": (
        "label,cat,dog\ncat,NA,NA\ndog,.4,.6\nNA,.5,.5\n",
        {"missing": "drop"},
        1.0,
    ),
    "p.csv: NA left out of decisions": (
        "y_true,y_pred\ncat,cat\nNA,dog\ndog,dog\ncat,NA\n",
        {"missing": "drop"},
        1.0,
    ),
    "p.csv: labels that lack a class, predicted labels another": (
        "label,pred\n0,1\n1,1\n1,2\n",
        {"classes": ["0", "1", "2"]},
        0.333,
    ),
    "p.csv: a logit beside features": (
        "V1,V2,V3,V4,V5,scaled_a,scaled_b,Class,logit\n"
        "-1.2,.1,2.7,3.5,1.1,4,-2.5,0,-3.1\n-.9,1.4,1.7,.2,.8,.3,1.5,1,2.2\n",
        {"from_logits": True},
        1.0,
    ),
    "p.csv: one-hot beside predicted labels": (
        "label,target_cat,target_dog,pred\ncat,1,0,cat\ndog,0,1,cat\n",
        {},
        0.5,
    ),
    "p.csv: features beside predicted labels": (
        "target,site_A,site_B,pred\na,1,0,a\nb,0,1,a\n",
        {},
        0.5,
    ),
    "p.csv: scores called as labels are": (
        "id,target\n1,.9\n2,.2\n3,.4\n",
        {"labels": SOLUTION},
        0.667,
    ),
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


REFUSED: dict[str, tuple[str, str, dict[str, Any], list[float]]] = {
    "labels that differ in case": (
        "label,pred\nCat,cat\ncat,cat\nDog,Dog\n",
        "cases",
        {},
        [0.667],
    ),
    "a code beside two classes": (
        "id,label,prob\n1,1,.2\n2,2,.8\n3,9,.5\n4,2,.3\n",
        "many_labels",
        {},
        [],
    ),
    "one label": ("label,prob\nyes,.9\nyes,.4\n", "one_label", {}, []),
    "the confidence of a predicted label": (
        "gold,prob a\na,.9\na,.8\nb,.7\nb,.6\n",
        "above_half",
        {},
        [0.5],
    ),
    "a gap that may be a class": (
        "y_true,y_pred\ncat,cat\nNA,dog\n",
        "label_gap",
        {},
        [1.0, 0.5],
    ),
    "two families": (
        "label,rf_a,rf_b,svm_a,svm_b\na,.7,.3,.6,.4\nb,.2,.8,.7,.3\n",
        "several",
        {},
        [1.0, 0.5, 1.0, 0.5],
    ),
    "what always is the best class": (
        "winner,cat,dog\n" + "cat,.7,.3\ndog,.2,.8\n" * 5,
        "best_class",
        {},
        [1.0],
    ),
    "numbers of classes with names": (
        "label,mild,severe\n0,.7,.3\n1,.2,.8\n",
        "which_number",
        {},
        [1.0, 0.0],
    ),
    "the confidence of a label": ("label,confidence\n1,.9\n0,.8\n", "no_scores", {}, []),
    "classes that begin after row 100": (
        "y_true,lr,svm\n" + "1,1,2\n2,1,2\n3,3,2\n" * 40 + "1,2,3\n2,2,1\n",
        "not_decisions",
        {},
        [0.664, 0.328, 0.664, 0.328],
    ),
    "numbers of features": (
        "V1,V2,V3,V4,V5,Class\n-1.2,.1,2.7,3.5,1.1,0\n-.9,1.4,1.7,.2,.8,1\n",
        "no_scores",
        {},
        [],
    ),
    "distances": (
        "label,distance_cat,distance_dog\ncat,.1,.9\ndog,.8,.2\n",
        "no_scores",
        {},
        [],
    ),
    "unknown scores beside a file of labels": (
        "id,x\n1,.9\n2,.2\n3,.4\n",
        "not_probability",
        {"labels": SOLUTION},
        [0.667],
    ),
    "labels of two classes of three": (
        "red,yellow,green,label\n.7,.2,.1,1\n.2,.3,.5,2\n",
        "first_number",
        {"concern": CONCERN},
        [0.5, 0.5],
    ),
    "labels of two classes of three, without a header": (
        "1,.7,.2,.1\n2,.2,.3,.5\n" * 5,
        "first_number",
        {"concern": CONCERN},
        [0.5, 0.5],
    ),
    "labels of two classes of three, without a header or a concern": (
        "1,.7,.2,.1\n2,.2,.3,.5\n" * 5,
        "first_number",
        {},
        [0.5, 0.5],
    ),
    "predicted labels of two classes of three": (
        "label,pred\n1,1\n2,1\n",
        "first_number",
        {"concern": CONCERN},
        [0.5, 0.5],
    ),
    "1 is yes": ("yes,no,label\n.7,.3,1\n.2,.8,2\n", "which_number", {}, [0.0, 1.0]),
    "lists of the best classes": (
        "label,probs\n" + '0,"[.7,.2,.1]"\n1,"[.6,.3,.1]"\n2,"[.8,.1,.1]"\n' * 10,
        "falling",
        {},
        [],
    ),
    "several columns of labels": (
        "label,y_true,a,b\na,b,0.5,0.5\nb,b,0.4,0.6\n",
        "several",
        {},
        [1.0, 0.5],
    ),
    "labels that no name tells": ("diagnosis,0,1\n0,0.5,0.5\n", "not_labels", {}, [1.0]),
    "labels of R without a name": (
        '"","rf_pred","rf_pred_code",""\n"31",.8,2,1\n"7",.4,1,1\n"59",.2,1,0\n"46",.9,2,1\n',
        "not_labels",
        {},
        [0.75],
    ),
    "two codes of two classes": ("label,pred\n1,1\n0,-1\n1,1\n", "two_codes", {}, []),
    "predicted labels from 1, labels from 0": (
        "y_true,y_pred\n0,1\n1,2\n2,3\n2,2\n",
        "two_codes",
        {},
        [0.25],
    ),
    "three models, one of which is sure": (
        "y,lr_prob,rf_prob,dt_prob,sex\n1,.9,.8,0,1\n0,.2,.3,0,1\n1,.4,.6,0,0\n0,.1,.7,1,1\n",
        "several",
        {},
        [0.75, 0.75, 0.25, 0.75, 0.75, 0.25],
    ),
    "two families of numbers": (
        "target,y1,y2,o1,o2\n1,0.2,0.8,0.5,0.5\n",
        "several",
        {},
        [0.0, 1.0],
    ),
    "a score of either class": (
        "target,score\nred,0.2\nblue,0.9\n",
        "which_class",
        {},
        [0.0, 1.0],
    ),
    "two columns of predicted labels": (
        "target,pred,y_pred\na,a,b\nb,a,b\n",
        "several",
        {},
        [0.5, 0.5],
    ),
    "lists without names": (
        "target,probs\ncat,[0.1 0.9]\ndog,[0.8 0.2]\n",
        "which_order",
        {},
        [0.0, 1.0],
    ),
    "lists without names of all classes": (
        "target,probs\ncat,[.1 .8 .1]\ndog,[.8 .1 .1]\n",
        "which_order",
        {},
        [],
    ),
    "lists beside a decision": (
        "target,probs,pred\ncat,[.1 .9],cat\ncat,[.8 .2],cat\n",
        "which_order",
        {},
        [],
    ),
    "labels from 1, columns from 0": (
        "label,p0,p1,p2\n1,.7,.2,.1\n3,.1,.1,.8\n2,.3,.4,.3\n",
        "by_place",
        {},
        [1.0],
    ),
    "logits": ("label,a,b\na,3.2,-1.1\nb,-.4,2.2\n", "sums", {}, [1.0]),
    "lines in quotes": ('"label,a,b"\n"a,0.7,0.3"\n', "quoted_lines", {}, []),
    "dictionaries in cells": (
        "label,scores\na,\"{'a': 0.7, 'b': 0.3}\"\n",
        "nested",
        {},
        [],
    ),
    "a test set of words in each cell": (
        "y_true,y_pred\n\"['cat', 'dog']\",\"['cat', 'cat']\"\n\"['dog']\",\"['dog']\"\n",
        "many_rows",
        {},
        [],
    ),
    "a test set in each cell": (
        'y_true,y_pred\n"[0, 1, 1]","[0, 1, 0]"\n"[1, 0]","[1, 0]"\n',
        "many_rows",
        {},
        [],
    ),
    "as many rows as cells have labels": (
        'y_true,y_prob\n"[0, 1, 1]","[.2, .7, .9]"\n',
        "many_rows",
        {},
        [],
    ),
    "numbers beside letters": (
        "label,pred\n0,A\n1,B\n1,A\n",
        "disjoint",
        {},
        [2 / 3, 1 / 3],
    ),
    "a confusion matrix": (",a,b\na,8,1\nb,2,9\n", "confusion", {}, []),
    "groups that are labels": ("target,a,b\na,.7,.3\n", "both", {"by": ["target"]}, []),
    "two models below each other": (
        "model,label,prob\n" + "rf,1,.9\nrf,0,.2\nsvm,1,.9\nsvm,0,.6\n",
        "stacked",
        {},
        [1.0, 0.5, 1.0],
    ),
    "rows of models with one score of either class": (
        "model,truth,ai_score\n" + "m1,x,.9\nm1,y,.2\nm1,x,.8\nm2,x,.4\nm2,y,.2\nm2,x,.7\n",
        "which_class",
        {},
        [0.0, 0.333, 1.0, 0.667],
    ),
    "one percentage in other words": (
        "Befund;Wahrscheinlichkeit (%)\nkrank;97,5\ngesund;2,5\nkrank;40,0\ngesund;12,5\n",
        "not_probability",
        {},
        [0.75, 0.25],
    ),
    "a model whose name begins as another's": (
        "label,deep_pred,deep_wide_pred\na,a,b\nb,b,b\n",
        "several",
        {},
        [1.0, 0.5, 1.0, 0.5],
    ),
    "models below each other, told apart by two columns, and folds": (
        "id,fold,y,p,net,size\n"
        + "".join(
            f"{row},{row % 2},{int(row > 1)},{score},{model}\n"
            for model, scores in (
                ("cnn,s", (0.1, 0.2, 0.8, 0.9)),
                ("cnn,m", (0.6, 0.2, 0.8, 0.9)),
                ("rnn,s", (0.6, 0.7, 0.3, 0.9)),
            )
            for row, score in enumerate(scores)
        ),
        "stacked",
        {},
        [1.0, 0.75, 0.25, 1.0],
    ),
    "a model whose probabilities are all 0 or 1": (
        "y,tree_pred,tree_proba,lr_pred,lr_proba\n1,1,1,1,.9\n0,1,1,0,.2\n1,1,1,0,.4\n0,0,0,0,.3\n",
        "several",
        {},
        [0.75, 0.75, 0.75, 0.75, 0.75, 0.75],
    ),
    "a model, its own decisions, and a score": (
        "fraud_label,predicted_label,predicted_proba,composite_risk_score\n"
        "1,1,.9,.7\n0,1,.6,.2\n1,0,.4,.6\n0,0,.1,.3\n",
        "not_labels",
        {},
        [0.5, 0.5],
    ),
    "columns of labels in another order than those of scores": (
        "target_cat,target_dog,target_owl,Scorecat,Scoreowl,Scoredog\n0,1,0,.31,.69,.0\n1,0,0,.23,.59,.18\n",
        "which_number",
        {},
        [0.5, 0.5, 0.0],
    ),
    "predicted words beside features of 0 and 1": (
        "urgent,root,predicted_label,label\n0,1,attack,1\n1,0,normal,0\n0,0,attack,0\n1,1,attack,1\n",
        "disjoint",
        {},
        [0.75, 0.25],
    ),
    "lists of many samples, as numpy prints them": (
        "model,Predictions,True Labels\n"
        'a,"[np.int64(0), np.int64(1), np.int64(1)]","[0, 1, 0]"\n'
        'b,"[np.int64(1), np.int64(1), np.int64(1)]","[1, 1, 0]"\n',
        "many_rows",
        {},
        [],
    ),
    "labels of two models, one of which says how sure it is": (
        "true_label,big_label,big_confidence,small_label\nok,ok,.9,bad\nbad,bad,.8,bad\nok,bad,.6,ok\n",
        "several",
        {},
        [0.667, 0.667, 0.667, 0.667],
    ),
    "three models side by side": (
        "y,lr_prob,rf_prob,svm_prob\n1,.9,.2,.6\n0,.3,.4,.8\n1,.8,.9,.1\n",
        "several",
        {},
        [1.0, 0.667, 0.333, 1.0, 0.667, 0.333],
    ),
    "models of a letter that also ends in a word beside it": (
        "y,a_healthy,a_ill,b_healthy,b_ill\n"
        "ill,.1,.9,.6,.4\nhealthy,.8,.2,.7,.3\nill,.4,.6,.2,.8\n",
        "several",
        {},
        [1.0, 0.667, 1.0, 0.667],
    ),
}
"""By what it is: the content, the code of the refusal, the options, and the accuracies that it offers."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mean_two_things_is_refused_with_ways_that_work(
    name: str, tmp_path: Path
) -> None:
    content, code, options, expected = REFUSED[name]
    path, concern = tmp_path / "p.csv", options.pop("concern", None)
    path.write_text(content)
    if "labels" in options:
        (tmp_path / "labels.csv").write_text(options["labels"])
        options["labels"] = tmp_path / "labels.csv"
    with pytest.raises(UnclearFileError) as refused:
        open_models([path], ReadOptions(**options), concern)
    assert refused.value.code == code
    offers = refused.value.offers
    measured = [value for offer in offers for value in offer.measured.values.values()]
    assert measured == pytest.approx(expected, abs=1e-3)
    for offer in offers:
        models = score_models(
            open_models([path], offer.options, concern), concern, intervals=False
        ).models
        values = [scores.values["accuracy"] for scores in models.values()]
        assert values == pytest.approx([*offer.measured.values.values()])


AS_ELSEWHERE: dict[str, tuple[str, float]] = {
    "0 and 1 are not turned by a word": ("label,p_healthy\n1,.9\n0,.2\n", 1.0),
    "predicted labels show whose probability it is": (
        "gold,pred,score\nb,b,.1\na,a,.9\nb,a,.6\n",
        0.667,
    ),
    "a score of the predicted label is none of a class": (
        "gold,answer,probability\n" + "yes,yes,.9\nno,no,.99\nno,yes,.45\nno,no,.3\n" * 3,
        0.75,
    ),
    "what was predicted has no labels": (
        "best_candidate,cat,dog,point_prediction\n" + "cat,.3,.7,dog\ndog,.2,.8,dog\n",
        0.5,
    ),
    "sigmoids beside predicted labels": (
        "label,pred,prob_a,prob_b\na,a,.9,.8\nb,a,.4,.3\n",
        0.5,
    ),
    "a name of labels of a known thing": (
        "died,prob_died,ward\n1,.9,2\n0,.3,1\n1,.2,3\n",
        0.667,
    ),
    "labels in another case": ("label,pred\nYes,yes\nNo,yes\n", 0.5),
    "an id with letters and digits": (
        "case_id,label,pred\n96825da4,a,a\n87438725,b,a\n1e5,b,b\n",
        0.667,
    ),
    "words that begin with capitals": (
        "CustomerId,Churn,ChurnPrediction,ChurnProbability\n7,Yes,Yes,.9\n8,No,No,.2\n9,Yes,No,.4\n",
        0.667,
    ),
    "a short name that ends with a capital": (
        "pH,quality,predicted_quality\n3.2,0,0\n3.5,1,0\n2.9,1,1\n",
        0.667,
    ),
    "true and predicted names": (
        "true_kind,predicted_group,predicted_kind\na,0,a\nb,1,a\n",
        0.5,
    ),
    "a class in brackets": (
        "Outcome,P (Outcome=No),P (Outcome=Yes)\nNo,.7,.3\nYes,.6,.4\n",
        0.5,
    ),
}
"""By what it is: the content of a file that is read at once, and the accuracy."""


@pytest.mark.parametrize("name", AS_ELSEWHERE)
def test_names_and_values_together_tell_the_reading(name: str, tmp_path: Path) -> None:
    content, expected = AS_ELSEWHERE[name]
    (tmp_path / "p.csv").write_text(content)
    assert accuracy(tmp_path / "p.csv") == expected


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


def test_models_with_other_ids_are_not_compared_row_by_row(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for first, path in enumerate(paths):
        path.write_text(
            "id,label,cat,dog\n" + "".join(f"{first + row},cat,.7,.3\n" for row in range(3))
        )
    with refused_file("b.csv: group_as_first, row 1, column id", expected="0", value="1"):
        score_models(open_models(paths, ReadOptions()), None)


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


def test_rows_that_are_left_out_are_counted(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("label,cat,dog\ncat,,\ndog,.4,.6\n")
    predictions = Predictions(tmp_path / "p.csv", ReadOptions(missing="drop"))
    assert len(predictions.rows().scores) == 1
    assert predictions.notes == [
        "1 row without a label, prediction, cluster, unit, weight or cost left out: values are those of the others."
    ]


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
