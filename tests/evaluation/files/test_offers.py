"""Options that an error offers for an unclear file: which files get which, and that each of them reads its file."""

from pathlib import Path

import pytest

from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions

OFFERED: dict[str, tuple[str, ReadOptions, list[str]]] = {
    "a word of labels and of predicted labels is a class before it is a gap": (
        "true_label,pred_label\nfavor,favor\nnone,none\nagainst,none\nfavor,against\n",
        ReadOptions(),
        ["--classes against,favor,none", "--missing drop"],
    ),
    "labels of several things have the scores of their own": (
        "fish_true,fish_prob,reef_true,reef_prob\n1,.8,0,.3\n0,.2,1,.7\n1,.6,0,.6\n",
        ReadOptions(),
        [
            "--label-column fish_true",
            "--label-column reef_true",
        ],
    ),
    "a fold is no label": (
        "fold,is_sick,model_pred\n" + "1,0,0\n2,1,1\n1,1,0\n2,0,0\n",
        ReadOptions(),
        ["--label-column is_sick"],
    ),
    "a column without a name that numbers the rows is no model": (
        ",churned,lr_score,rf_score\n0,1,.7,.6\n1,0,.2,.6\n2,1,.8,.4\n3,0,.3,.1\n",
        ReadOptions(),
        [
            "--label-column churned --models lr,rf",
            "--label-column churned --score-columns lr_score",
            "--label-column churned --score-columns rf_score",
        ],
    ),
    "ids that differ in each row are no labels": (
        "file_id,genre,predicted_cluster\n"
        + "".join(f"{7 * row},{'ab'[row % 2]},{row % 3}\n" for row in range(20)),
        ReadOptions(),
        [],
    ),
    "predicted words beside labels of numbers": (
        "text,label,bart_pred\nx,0,ham\ny,1,spam\nz,1,ham\nx,0,ham\n",
        ReadOptions(),
        [
            "--label-column label --classes ham,spam",
            "--label-column label --classes spam,ham",
        ],
    ),
    "a column called prediction comes before features": (
        "visits,prediction,dropout\n.9,.2,0\n.8,.7,1\n.4,.6,1\n.5,.1,0\n",
        ReadOptions(),
        [
            "--label-column dropout",
            "--label-column dropout --score-columns visits",
        ],
    ),
    "predicted labels of many classes, of which some are in one column alone": (
        "label,ai_code\n"
        + "".join(
            f"{row},{row if row % 2 else row + 50}\n" for row in (*range(30), *range(30))
        ),
        ReadOptions(),
        [
            "--decision-column ai_code",
            "--label-column ai_code --decision-column label",
        ],
    ),
    "two codes of labels and of predicted labels are no models": (
        "true_label_idx,true_label,predicted_label_idx,predicted_label\n"
        "0,cat,0,cat\n1,dog,0,cat\n1,dog,1,dog\n0,cat,0,cat\n",
        ReadOptions(),
        ["--decision-column predicted_label_idx", "--decision-column predicted_label"],
    ),
    "rows that repeat by groups may be those of one model": (
        "language,label,pred\n" + "en,a,a\nbn,a,b\nen,b,b\nbn,b,b\n" * 4,
        ReadOptions(),
        ["--models en,bn", "--by language", "--models en"],
    ),
    "rows of models in another order are matched by ids": (
        "model,id,label,pred\nlr,1,a,a\nlr,2,b,a\nlr,3,b,b\nrf,3,b,b\nrf,1,a,b\nrf,2,b,b\n",
        ReadOptions(),
        ["--models lr,rf --id-column id", "--models lr"],
    ),
    "models with a label and a score, which repeat by groups": (
        "language,expected_label,lr_label,lr_score,rf_label,rf_score\n"
        + "en,a,a,.1,b,.3\nbn,a,b,.2,c,.5\nen,b,b,.4,a,.6\nbn,b,c,.1,b,.7\nen,c,c,.1,c,.7\nbn,c,c,.1,c,.7\n"
        * 4,
        ReadOptions(),
        [
            "--models lr,rf --by language",
            "--decision-column lr_label --models en,bn",
            "--decision-column lr_label --by language",
            "--decision-column rf_label --models en,bn",
            "--decision-column rf_label --by language",
        ],
    ),
    "a constant that no prediction has is no label": (
        "id,prediction,topic,model\n1,in,x,RF\n2,out,x,RF\n3,in,x,RF\n",
        ReadOptions(),
        [],
    ),
    "labels in a column called class, and others in a column without a usual name": (
        "paper,subject,class_label\n11,x,y\n25,y,y\n31,x,x\n",
        ReadOptions(),
        [
            "--decision-column subject",
            "--label-column subject --decision-column class_label",
        ],
    ),
    "a name that says which labels are true": (
        "paper,subject,true_class\n11,x,y\n25,y,y\n31,x,x\n",
        ReadOptions(),
        ["--decision-column subject"],
    ),
    "expected and actual, which are equal": (
        "id,expected,actual,pass\n1,a,a,yes\n2,b,b,yes\n",
        ReadOptions(),
        [
            "--decision-column actual",
            "--decision-column expected",
        ],
    ),
    "many models with predicted labels alone": (
        "a,b1,b2,c,d,e,f,g,y\n"
        "1,1,0,0,1,1,1,0,1\n0,1,0,0,1,0,0,0,0\n0,0,1,0,0,1,0,1,1\n0,0,0,1,0,1,0,0,0\n",
        ReadOptions(),
        [
            "--models a,b1,b2,c,d,e,f,g",
            "--decision-column a",
            "--decision-column b1",
            "--decision-column b2",
            "--decision-column c",
            "--decision-column d",
        ],
    ),
    "models of labels that no name tells": (
        "id,severity,lr_severity,rule_severity\n1,hi,hi,lo\n2,lo,lo,lo\n3,lo,hi,hi\n",
        ReadOptions(),
        [
            "--label-column severity --models lr,rule",
            "--label-column severity --decision-column lr_severity",
            "--label-column severity --decision-column rule_severity",
            "--label-column lr_severity --decision-column severity",
            "--label-column lr_severity --decision-column rule_severity",
            "--label-column rule_severity --decision-column severity",
        ],
    ),
    "models beside several columns of labels": (
        "label,y_true,lr_score,rf_score\n1,1,.7,.4\n0,1,.2,.6\n0,0,.3,.1\n",
        ReadOptions(),
        [
            "--label-column label --models lr,rf",
            "--label-column label --score-columns lr_score",
            "--label-column label --score-columns rf_score",
            "--label-column y_true --score-columns lr_score",
            "--label-column y_true --score-columns rf_score",
        ],
    ),
    "scores whose names share no words, beside predicted labels": (
        "y,lr_score,cnn_prob,lr_pred,cnn_prediction\n1,.7,.4,1,0\n0,.2,.6,0,1\n0,.3,.1,0,0\n",
        ReadOptions(),
        [
            "--models lr_score,cnn_prob",
            "--score-columns lr_score",
            "--score-columns cnn_prob",
            "--decision-column lr_pred",
            "--decision-column cnn_prediction",
        ],
    ),
    "predicted labels of two models beside labels that only their values tell": (
        "text,toxic,a_pred,b_pred\nt,1,0,1\nu,1,1,1\nv,0,0,0\n",
        ReadOptions(),
        [
            "--label-column toxic --models a,b",
            "--label-column toxic --decision-column a_pred",
            "--label-column toxic --decision-column b_pred",
        ],
    ),
    "labels and predicted labels without telling names, some of which are missing": (
        "id,category,manual_category\n1,a,a\n2,None,None\n3,b,a\n4,,\n5,a,b\n",
        ReadOptions(),
        [
            "--label-column category --decision-column manual_category --missing drop",
            "--label-column manual_category --decision-column category --missing drop",
        ],
    ),
    "a name in another language with one word more": (
        "id,late,left,left_predit\n1,1,0,0\n2,3,0,0\n3,2,1,1\n4,0,0,1\n",
        ReadOptions(),
        [
            "--label-column left --decision-column left_predit",
            "--label-column left_predit --decision-column left",
        ],
    ),
    "a class that only predicted labels have": (
        "wahr,vermutet\nu,u\nv,v\nv,w\nu,u\n",
        ReadOptions(),
        [
            "--label-column wahr --decision-column vermutet",
            "--label-column vermutet --decision-column wahr",
        ],
    ),
    "an output beside predictions": (
        "input,output,prediction\nsome,1,1\nother,0,0\nthird,0,1\n",
        ReadOptions(),
        ["--label-column output"],
    ),
    "numbers of two words, one of which is not the other": (
        "true_label,predicted_label\n0,not_hateful\n1,hateful\n0,hateful\n",
        ReadOptions(),
        [
            "--label-column true_label --classes not_hateful,hateful",
            "--label-column true_label --classes hateful,not_hateful",
        ],
    ),
    "scores of families, some of which are constant": (
        "left_score,mid_score,right_score,leaning\n0,1,0,2\n0,.9,.1,1\n0,1,0,0\n0,.8,.2,1\n",
        ReadOptions(),
        ["--label-column leaning --score-columns left_score,mid_score,right_score"],
    ),
    "columns that abbreviate the labels": (
        "expected_class,sl_prob,bkg_prob\nsea_lion,.9,.1\nsea_lion,.3,.7\nbackground,.2,.8\n",
        ReadOptions(),
        ["--score-columns sl_prob,bkg_prob --classes sea_lion,background"],
    ),
    "the score of the predicted label": (
        "gold,label,score\nA,A,.98\nB,B,.91\nA,B,.62\nB,B,.88\n",
        ReadOptions(),
        [
            "--decision-column label",
            "--decision-column gold",
            "--label-column gold --classes A,B",
            "--label-column gold --classes B,A",
            "--label-column label --classes A,B",
            "--label-column label --classes B,A",
        ],
    ),
    "scores beside a time": (
        "file,label,No cat,Cat,Time\na,1,.1,.9,.6\nb,0,.8,.2,.1\nc,1,.3,.7,.3\n",
        ReadOptions(),
        ["--score-columns 'No cat,Cat'", "--score-columns 'Cat,No cat'"],
    ),
    "predicted labels beside a column of JSON": (
        'diagnosis,raw,true_label\nflu,"{""d"": ""flu""}",flu\ncold,"{""d"": ""x""}",flu\n'
        'cold,"{""d"": ""y""}",cold\n',
        ReadOptions(),
        ["--decision-column diagnosis"],
    ),
    "predicted labels beside scores of fewer classes": (
        "true_label,predict,prob_1,prob_2\n0,0,.8,.2\n1,1,.7,.3\n2,1,.6,.4\n",
        ReadOptions(),
        ["--decision-column predict"],
    ),
    "decisions are false and true, and labels are two other words": (
        "label,is_anomaly\nnormal,False\nbotnet,True\nnormal,True\nnormal,False\n",
        ReadOptions(decision_column="is_anomaly"),
        [
            "--label-column label --classes botnet,normal",
            "--label-column label --classes normal,botnet",
        ],
    ),
    "labels are false and true, and decisions are two other words": (
        "is_spam,pred\nfalse,ham\ntrue,spam\nfalse,spam\n",
        ReadOptions(label_column="is_spam"),
        ["--classes ham,spam", "--classes spam,ham"],
    ),
}
"""By what it is: the content of a file, the options given, and the options that are offered."""


def refused(path: Path, options: ReadOptions) -> UnclearFileError:
    """Return the error for an unclear file, each of whose offers measures what it says."""
    with pytest.raises(UnclearFileError) as error:
        open_models([path], options)
    for offer in error.value.offers:
        models = score_models(
            open_models([path], offer.options), None, intervals=False
        ).models
        values = {name: scores.values["accuracy"] for name, scores in models.items()}
        assert [*values.values()] == pytest.approx([*offer.measured.values.values()])
    return error.value


@pytest.mark.parametrize("name", OFFERED)
def test_an_unclear_file_gets_the_options_that_read_it(name: str, tmp_path: Path) -> None:
    content, options, expected = OFFERED[name]
    path = tmp_path / "p.csv"
    path.write_text(content)
    assert [offer.words for offer in refused(path, options).offers] == expected


def test_scores_that_do_not_sum_to_1_are_named_once(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = "1,0,1,.9,.8\n" * 150 + "2,1,1,.1,.1\n"
    path.write_text(f"id,label,pred,prob_0,prob_1\n{rows}")
    how = Predictions(path).how()
    assert how.endswith(
        "; not used: id; prob_0, prob_1 are not scores that sum to 1: the first rows sum to 1.7 to 1.7"
    )


def test_given_models_are_not_replaced_by_others(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = "en,a,a,b\nbn,a,b,b\nen,b,b,a\nbn,b,b,b\n" * 4
    path.write_text(f"language,label,lr_pred,rf_pred\n{rows}")
    with pytest.raises(UnclearFileError) as error:
        open_models([path], ReadOptions(models=("lr", "rf")))
    assert [offer.words for offer in error.value.offers] == ["--by language"]
    open_models([path], ReadOptions(models=("lr", "rf"), by=("language",)))


def test_ways_that_were_not_tried_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(OFFERED["many models with predicted labels alone"][0])
    error = refused(path, ReadOptions())
    assert error.untried == 3
    assert str(error).endswith("and 3 more, which were not tried")
