"""Evaluating shipped decisions: classes, coarse answers and referrals, from tensors and from files."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score
from torch import Tensor

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.decision_numbers import decision_numbers
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional import clopper_pearson
from tests.cli.shell import run
from tests.refused import Refused
from tests.report.page import Page

SPEC = ConcernSpec(
    ["benign", "suspicious", "malignant"],
    weights=[[0, 1, 3], [1, 0, 2], [8, 4, 0]],
    dangerous=[["malignant", "benign"]],
    refer=2,
    answers={"suspicious or malignant": 0.5},
)
Rows = tuple[Tensor, Tensor]
NAMES = list(decision_numbers(SPEC.classes, SPEC.answers))


def drawn(rows: int, seed: int) -> Rows:
    """Draw decisions, some of them coarse answers and referrals, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(3, (rows,), generator=generator)
    other = torch.randint(-1, 4, (rows,), generator=generator)
    return torch.where(torch.rand(rows, generator=generator) < 0.6, target, other), target


def test_prices_of_referrals_and_answers_change_nothing_of_decisions_without_them() -> None:
    decisions, target = drawn(500, 0)
    bare = ConcernSpec(SPEC.classes, weights=SPEC.weights, dangerous=SPEC.dangerous)
    decisions = torch.where((decisions < 0) | (decisions > 2), target, decisions)
    priced, plain = [
        evaluate(decisions, target, concern=spec).find("expected_concern")
        for spec in (SPEC, bare)
    ]
    assert priced == plain


def test_values_are_those_of_counting_by_hand() -> None:
    decisions, target = drawn(500, 0)
    result = evaluate(decisions, target, concern=SPEC)
    decided = int((decisions >= 0).sum())
    dangerous = int(((decisions == 0) & (target == 2)).sum())
    values = result.first.values
    assert values["dangerous"] == dangerous > 0
    expected = {
        "coverage": decided / 500,
        "selective_dangerous_rate": dangerous / decided,
        "mean_concern": SPEC.costs()[target, decisions].mean().item(),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    exact = clopper_pearson(dangerous, 500)
    assert result.interval("dangerous_rate") == pytest.approx(exact)
    assert "accuracy" not in values


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_decisions_are_given_by_name_as_in_files(kind: Any) -> None:
    decisions, target = drawn(500, 0)
    expected = evaluate({"A": decisions, "B": target}, target, concern=SPEC)
    first, second = [
        kind([NAMES[number] for number in each]) for each in (decisions, target)
    ]
    found = evaluate({"A": first, "B": second}, second, concern=SPEC)
    assert repr(found.to_dict()) == repr(expected.to_dict())  # which has NaN
    part = Evaluation(SPEC.classes, concern=SPEC, is_decided=True, refers=True)
    part.update({"A": first}, second)
    assert part.result().first.values == expected.models["A"].values


def test_names_without_referrals_have_the_metrics_of_classes() -> None:
    names = ["benign"] * 40 + ["malignant"] * 10
    found = evaluate(names, NAMED[:50], class_names=SPEC.classes)
    assert found.value("accuracy") == accuracy_score(NAMED[:50], names)
    referred = evaluate(["refer", *names[1:]], NAMED[:50], class_names=SPEC.classes)
    assert referred.value("coverage") == 0.98


def test_a_class_named_as_a_referral_is_a_class() -> None:
    found = evaluate(
        ["go", "refer", "refer", "go"],
        ["go", "refer", "go", "go"],
        class_names=["go", "refer"],
    )
    assert found.first.confusion.tolist() == [[2, 1], [0, 1]]  # type: ignore[union-attr]


Y = torch.arange(60) % 3
SCORED = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
NAMED = [SPEC.classes[label] for label in Y]
DECIDED = [SPEC.classes[label] for label in SCORED.argmax(1)]


@pytest.mark.parametrize("concern", [None, SPEC])
@pytest.mark.parametrize("labels", [Y, Y.tolist(), Y.numpy(), NAMED, np.array(NAMED)])
def test_the_order_of_scikit_learn_is_refused_where_it_shows(
    labels: Any, concern: ConcernSpec | None
) -> None:
    one_hot, of_class = torch.eye(3, dtype=torch.int64)[Y], SCORED[:, 0]
    refused: list[tuple[Any, Any, str]] = [
        *((labels, scores, "classes_second") for scores in (SCORED, SCORED.tolist())),
        *((labels, scores, "classes_second") for scores in (of_class, of_class.numpy())),
        *((labels, {"A": models}, "labels_second") for models in (SCORED, labels)),
    ]
    for preds, target, code in refused:
        with Refused(code, "target"):
            evaluate(preds, target, concern=concern)
    with Refused("preds_first", "preds"):
        evaluate(one_hot, SCORED, concern=concern)
    names: Any = {"class_names": SPEC.classes, "concern": concern}
    evaluate(SCORED, labels, **names)
    evaluate(DECIDED, labels, **names)
    # Nothing shows that these decisions and labels are swapped.
    evaluate(labels, DECIDED, **names)


def test_costs_are_left_out_where_a_referral_has_none() -> None:
    decisions, target = drawn(50, 4)
    result = evaluate(decisions.clamp(max=2), target, concern=ConcernSpec(SPEC.classes))
    assert "mean_concern" not in result.first.values
    assert result.value("coverage") == (decisions >= 0).double().mean()
    left_out = "decisions may be referrals, for which the concern has no cost (refer)"
    assert f"costs are left out: {left_out}" in result.warnings()


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"preds": torch.tensor([0, 4])}, Refused("decisions_or_scores", "preds")),
        ({"preds": torch.tensor([0.0, 1.0])}, Refused("both_classes", "preds")),
        ({"preds": ["refer", "maybe"]}, Refused("one_of", "preds", "maybe")),
        ({"target": ["benign", "refer"]}, Refused("one_of", "target", "refer")),
        ({"target": ["benign", float("nan")]}, Refused("one_of", "target", float("nan"))),
        ({"concern": None}, Refused("names_of_decisions", "class_names")),
        (
            {"metrics": ["mpcs", "accuracy"]},
            Refused("no_probabilities", "", metrics="mpcs"),
        ),
        (
            {"metrics": ["accuracy", "mcc"]},
            Refused("has_referrals", metrics="accuracy, mcc"),
        ),
    ],
)
def test_what_is_no_decision_is_refused(changed: dict[str, Any], refusal: Refused) -> None:
    rows = {"preds": torch.tensor([0, -1]), "target": torch.tensor([0, 1])}
    with refusal:
        evaluate(**{**rows, "concern": SPEC, **changed})


@pytest.mark.parametrize(
    "concern", [None, ConcernSpec(["cat", "dog"], releases=[["cat", "dog"]])]
)
def test_predicted_labels_have_the_metrics_of_decisions_and_are_compared_with_scores(
    concern: ConcernSpec | None, tmp_path: Path
) -> None:
    paths = [tmp_path / "A.csv", tmp_path / "B.csv"]
    rows = ["cat,cat", "cat,dog", "dog,dog", "cat,cat"] * 20
    paths[0].write_text("\n".join(["y_pred,y_true", *rows]))
    rows = [".9,.1,cat", ".2,.8,dog", ".4,.6,dog", ".7,.3,cat"] * 20
    paths[1].write_text("\n".join(["cat,dog,y_true", *rows]))
    alone = score_models(open_models(paths[:1], ReadOptions(), concern), concern)
    assert alone.read == ['A.csv: labels "y_true"; predicted labels "y_pred"']
    assert [alone.value("accuracy"), alone.value("mcc")] == pytest.approx([0.75, 3**-0.5])
    assert not {"coverage", "mpcs"} & {*alone.first.values}
    both = score_models(open_models(paths, ReadOptions(), concern), concern)
    assert both.value("accuracy", model="B") == 1
    assert both.comparisons[0].better == "B"
    assert both.read[1].endswith("cat, dog; compared by their most probable classes")


def test_the_command_scores_and_reports_decisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_concern(SPEC, tmp_path / "concern.yaml")
    decisions, target = drawn(300, 6)
    pages = []
    for decided in (decisions, decisions.where(decisions != -1, target)):
        rows = pd.DataFrame({"decision": decided.numpy(), "target": target.numpy()})
        rows = rows.map(NAMES.__getitem__).assign(patient=rows.index % 7)
        rows.to_csv(tmp_path / "A.csv", index=False)
        flags = ["--concern", tmp_path / "concern.yaml", "--by", "patient", "--overwrite"]
        page = tmp_path / "r.html"
        assert run("score", tmp_path / "A.csv", *flags, "--html", page) == 0
        pages.append(Page(page))
    printed = capsys.readouterr().out
    columns = "benign | suspicious | malignant | suspicious or malignant | referred"
    assert f"| true class | {columns} |" in printed
    assert "Of 1 000 rows, " in printed
    share, facts = r"[\d.]+ % \[[\d., ]+\]", pages[0].facts
    assert re.fullmatch(rf"\d+ of 300 rows {share}", facts["referred"])
    assert re.fullmatch(rf"{share} \d+ of \d+ rows", facts["accuracy of the decided"])
    [matrix] = [alt for alt in pages[0].alts if alt.startswith("Confusion matrix")]
    assert " are referred." in matrix
    assert pages[1].facts["referred"].startswith("0 of 300 rows "), "none is referred"
