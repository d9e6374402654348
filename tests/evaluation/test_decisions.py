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
NAMES = list(decision_numbers(SPEC.classes, SPEC.answers))


def drawn(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw decisions, some of them coarse answers and referrals, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(3, (rows,), generator=generator)
    other = torch.randint(-1, 4, (rows,), generator=generator)
    return torch.where(torch.rand(rows, generator=generator) < 0.6, target, other), target


def test_prices_of_referrals_and_answers_change_nothing_of_decisions_without_them() -> None:
    decisions, target = drawn(500, 0)
    bare = ConcernSpec(SPEC.classes, weights=SPEC.weights, dangerous=SPEC.dangerous)
    decisions = torch.where((decisions < 0) | (decisions > 2), target, decisions)
    priced, plain = (
        evaluate(decisions, target, concern=spec, metrics=["expected_concern"])
        for spec in (SPEC, bare)
    )
    assert priced.find("expected_concern") == plain.find("expected_concern")


def test_values_are_those_of_counting_by_hand() -> None:
    decisions, target = drawn(500, 0)
    result = evaluate(decisions, target, concern=SPEC)
    pairs = list(zip(decisions.tolist(), target.tolist(), strict=True))
    decided = sum(decision >= 0 for decision, _ in pairs)
    dangerous = sum(pair == (0, 2) for pair in pairs)
    assert result.value("coverage") == decided / 500
    assert result.value("dangerous") == dangerous > 0
    assert result.value("selective_dangerous_rate") == pytest.approx(dangerous / decided)
    costs = SPEC.costs()
    mean = sum(costs[true, decision].item() for decision, true in pairs) / 500
    assert result.value("mean_concern") == pytest.approx(mean)
    assert result.interval("dangerous_rate") == pytest.approx(
        clopper_pearson(dangerous, 500)
    )
    assert "accuracy" not in result.first.values


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_decisions_are_given_by_name_as_in_files(kind: Any) -> None:
    decisions, target = drawn(500, 0)
    expected = evaluate({"A": decisions, "B": target}, target, concern=SPEC)
    names = {
        name: kind([NAMES[number] for number in each])
        for name, each in (("A", decisions), ("B", target))
    }
    found = evaluate(names, names["B"], concern=SPEC)
    assert repr(found.to_dict()) == repr(expected.to_dict())  # which has NaN
    part = Evaluation(SPEC.classes, concern=SPEC, is_decided=True, refers=True)
    part.update(names, names["B"])
    assert part.result().models["A"].values == expected.models["A"].values


def test_names_without_referrals_have_the_metrics_of_classes() -> None:
    _, target = drawn(50, 0)
    names = ["benign"] * 40 + ["malignant"] * 10
    found = evaluate(names, target, class_names=SPEC.classes)
    assert found.value("accuracy") == accuracy_score(
        [SPEC.classes[label] for label in target], names
    )
    assert (
        evaluate(["refer", *names[1:]], target, class_names=SPEC.classes).value("coverage")
        == 0.98
    )


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
    for scores in (
        SCORED,
        SCORED.tolist(),
        SCORED.numpy(),
        SCORED[:, 0],
        SCORED[:, 0].numpy(),
    ):
        with Refused("classes_second", "target"):
            evaluate(labels, scores, concern=concern)
    for models in ({"A": SCORED}, {"A": labels}):
        with Refused("labels_second", "target"):
            evaluate(labels, models, concern=concern)  # type: ignore[arg-type]
    with Refused("preds_first", "preds"):
        evaluate(torch.eye(3, dtype=torch.int64)[Y], SCORED, concern=concern)
    evaluate(SCORED, labels, class_names=None if concern else SPEC.classes, concern=concern)
    evaluate(DECIDED, labels, class_names=SPEC.classes, concern=concern)
    # Nothing shows that these decisions and labels are swapped.
    evaluate(labels, DECIDED, class_names=SPEC.classes, concern=concern)


def test_costs_are_left_out_where_a_referral_has_none() -> None:
    decisions, target = drawn(50, 4)
    spec = ConcernSpec(SPEC.classes)
    result = evaluate(decisions.clamp(max=2), target, concern=spec)
    assert "mean_concern" not in result.first.values
    assert (
        "costs are left out: decisions may be referrals, for which the concern has no cost (refer)"
        in result.warnings()
    )
    assert (
        evaluate(decisions.clamp(max=2), target, class_names=3).value("coverage")
        == (decisions >= 0).double().mean()
    )


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"preds": torch.tensor([0, 4])}, Refused("decisions_or_scores", "preds")),
        (
            {"preds": torch.tensor([0.0, 1.0])},
            Refused("both_classes", "preds"),
        ),
        (
            {"preds": ["refer", "maybe"]},
            Refused("one_of", "preds", "maybe"),
        ),
        ({"target": ["benign", "refer"]}, Refused("one_of", "target", "refer")),
        ({"target": ["benign", float("nan")]}, Refused("one_of", "target", float("nan"))),
        ({"concern": None}, Refused("names_of_decisions", "class_names")),
        (
            {"metrics": ["mpcs", "accuracy"]},
            Refused("no_probabilities", "", metrics="mpcs"),
        ),
        (
            {"metrics": ["accuracy", "macro_recall"]},
            Refused("has_referrals", "", metrics="accuracy, macro_recall"),
        ),
    ],
)
def test_what_is_no_decision_is_refused(
    changed: dict[str, object], refusal: Refused
) -> None:
    arguments: dict[str, object] = {
        "preds": torch.tensor([0, -1]),
        "target": torch.tensor([0, 1]),
        "concern": SPEC,
    }
    with refusal:
        evaluate(**{**arguments, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "concern", [None, ConcernSpec(["cat", "dog"], releases=[["cat", "dog"]])]
)
def test_predicted_labels_have_the_metrics_of_decisions_and_are_compared_with_scores(
    concern: ConcernSpec | None, tmp_path: Path
) -> None:
    target = ["cat", "dog", "dog", "cat"] * 20
    decided = pd.DataFrame({"y_pred": ["cat", "cat", "dog", "cat"] * 20, "y_true": target})
    probs = pd.Series([0.9, 0.2, 0.4, 0.7] * 20)
    scored = pd.DataFrame({"cat": probs, "dog": 1 - probs, "y_true": target})
    paths = [tmp_path / "A.csv", tmp_path / "B.csv"]
    decided.to_csv(paths[0], index=False)
    scored.to_csv(paths[1], index=False)
    alone = score_models(open_models(paths[:1], ReadOptions(), concern), concern)
    assert alone.read == ['A.csv: labels "y_true"; predicted labels "y_pred"']
    assert [alone.value("accuracy"), alone.value("mcc")] == pytest.approx([0.75, 3**-0.5])
    assert not {"coverage", "mpcs"} & {*alone.first.values}
    both = score_models(open_models(paths, ReadOptions(), concern), concern)
    assert both.value("accuracy", model="B") == 1
    assert both.comparisons[0].better == "B"
    assert both.read[1].endswith("cat, dog; compared by their most probable classes")


def test_the_command_scores_and_reports_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_concern(SPEC, Path("concern.yaml"))
    decisions, target = drawn(300, 6)
    pages = []
    for decided in (decisions, decisions.where(decisions != -1, target)):
        rows = pd.DataFrame({"decision": decided.numpy(), "target": target.numpy()})
        rows = rows.map(NAMES.__getitem__).assign(patient=rows.index % 7)
        rows.to_csv("A.csv", index=False)
        flags = ["--concern", "concern.yaml", "--by", "patient", "--overwrite"]
        assert run("score", "A.csv", *flags, "--html", "r.html") == 0
        pages.append(Page(Path("r.html")))
    printed = capsys.readouterr().out
    assert (
        "| true class | benign | suspicious | malignant | suspicious or malignant | referred |"
        in printed
    )
    assert "Of 1 000 rows, " in printed
    facts = pages[0].facts
    share = r"[\d.]+ % \[[\d., ]+\]"
    assert re.fullmatch(rf"\d+ of 300 rows {share}", facts["referred"])
    decided_right = facts["accuracy of the decided"]
    assert re.fullmatch(rf"{share} \d+ of \d+ rows", decided_right)
    [matrix] = [alt for alt in pages[0].alts if alt.startswith("Confusion matrix")]
    assert " are referred." in matrix
    assert pages[1].facts["referred"].startswith("0 of 300 rows "), "none is referred"
