"""Soft labels as shares of annotators: values are means over their labels, and laws tie intervals to weighted rows."""

from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss
from torch import Tensor
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassF1Score,
    MulticlassMatthewsCorrCoef,
)
from torchmetrics.regression import MeanSquaredError

from mpcs_torch import ConcernRange, ConcernSpec, evaluate
from tests.evaluation.alike import assert_same_numbers
from tests.evaluation.means import MEANS
from tests.refused import Refused

NAMES = ["well", "unclear", "ill"]
CONCERN, DEARER = [
    ConcernSpec(
        NAMES,
        weights=[[0, 1, 1], [1, 0, 1], [dearest, 2, 0]],
        dangerous=5,
        class_groups={"seen": NAMES[1:]},
    )
    for dearest in (20, 30)
]
GENERATOR = torch.Generator().manual_seed(0)
TRUTH = torch.multinomial(
    torch.tensor([0.6, 0.3, 0.1]), 240, replacement=True, generator=GENERATOR
)
SLIPS = torch.randint(3, (3, 240), generator=GENERATOR)
VOTES = torch.where(torch.rand(3, 240, generator=GENERATOR) < 0.6, TRUTH, SLIPS)
SHARES = torch.nn.functional.one_hot(VOTES, 3).double().mean(0)
A, B = [
    (
        1.5 * torch.randn(240, 3, generator=GENERATOR).double()
        + skill * torch.eye(3).double()[TRUTH]
    ).softmax(1)
    for skill in (1.5, 2.5)
]
SITES = ["north" if row % 3 else "south" for row in range(240)]
PLACES, CLASSES = SHARES.nonzero(as_tuple=True)
WEIGHTS = SHARES[PLACES, CLASSES]


def measured(target: Tensor = SHARES, preds: Any = A, **arguments: Any) -> Any:
    return evaluate(preds, target, **{"concern": CONCERN, **arguments})


def test_values_are_means_over_the_labels_of_annotators() -> None:
    found = measured(groups={"site": SITES})
    decided = A.argmax(1)
    repeated, decisions = VOTES.flatten(), decided.repeat(3)
    costs = CONCERN.mpcs_weights().fill_diagonal_(0)
    is_dangerous = CONCERN.dangerous_pairs() & ~torch.eye(3).bool()
    seen = SHARES[:, 1:]
    expected = {
        "expected_concern": costs[repeated, decisions].mean()
        / (SHARES @ costs).mean(0).min(),
        "dangerous_rate": is_dangerous[repeated, decisions].double().mean(),
        "accuracy": accuracy_score(repeated, decisions),
        "macro_f1": f1_score(repeated, decisions, average="macro"),
        "cross_entropy": log_loss(repeated, A.repeat(3, 1)),
        "recall[seen]": seen[decided > 0].sum() / seen.sum(),
        "mpcs": sum(measured(votes).value("mpcs") for votes in VOTES) / 3,
    }
    values = {name: found.find(name)[0] for name in expected}
    assert values == pytest.approx({name: float(value) for name, value in expected.items()})
    squared = (A.unsqueeze(1) - torch.eye(3)).square().sum(2)
    brier = (SHARES * squared).sum(1)[::3].mean().item()  # every third row is in the south
    assert found.value("brier_score", group=("site", "south")) == pytest.approx(brier)
    assert found.first.rows == 240


PATIENTS = torch.arange(240) // 4
ROW_WEIGHTS = 0.5 + torch.rand(240, generator=GENERATOR).double()


@pytest.mark.parametrize("columns", [{}, {"clusters": PATIENTS, "weights": ROW_WEIGHTS}])
def test_shares_are_weighted_rows_of_each_class_clustered_by_the_row(
    columns: dict[str, Tensor],
) -> None:
    shares = measured(preds={"A": A, "B": B}, **columns)
    of_rows = {"clusters": torch.arange(240), "weights": torch.ones(240), **columns}
    rows = measured(
        CLASSES,
        {"A": A[PLACES], "B": B[PLACES]},
        clusters=of_rows["clusters"][PLACES],
        weights=WEIGHTS * of_rows["weights"][PLACES],
    )
    # Means allow for one more bad row, not for as many as are clustered; so do rates of independent rows.
    rates = ["dangerous_rate", "misclassification_rate"]
    assert_same_numbers(shares, rows, one_end=[*MEANS, *rates])
    assert len(shares.comparisons) == len(rows.comparisons) == 5


@pytest.mark.parametrize("preds", [A, torch.full((240,), -1)])
def test_rare_classes_are_counted_in_clusters(preds: Tensor) -> None:
    """Of shares, and of decisions that may be referrals."""
    target = SHARES if preds.ndim == 2 else TRUTH
    found = measured(target, preds, clusters=torch.arange(240) // 24)
    assert "few clusters with samples" in "".join(found.warnings())


def test_annotators_who_agree_are_one_class_for_each_row() -> None:
    one_hot, preds = torch.eye(3).double()[TRUTH], {"A": A, "B": B}
    agreed, labelled = measured(one_hot, preds), measured(TRUTH, preds)
    assert_same_numbers(agreed, labelled)
    assert agreed.first.confusion.equal(labelled.first.confusion.double())


def test_degrees_of_truth_keep_their_meaning() -> None:
    degrees, counted = evaluate({"A": A, "B": B}, SHARES), measured()
    assert "accuracy" not in degrees.models["A"].values
    assert [row.measure for row in degrees.comparisons] == ["macro soft F1", "divergence"]
    assert "Soft labels are degrees of truth" in "".join(degrees.notes)
    both = measured(metrics=["soft_f1_macro", "brier_score"])
    value, ends, _ = degrees.find("soft_f1_macro", "A")
    assert both.value("soft_f1_macro") == pytest.approx(value)
    assert both.interval("soft_f1_macro") == pytest.approx(ends)
    assert both.value("brier_score") == pytest.approx(counted.value("brier_score"))
    other = evaluate(A, 0.3 * SHARES)
    assert "soft_f1_macro" in other.first.values, "degrees need not sum to 1"


def test_shares_that_are_rounded_to_two_decimals_are_divided_by_their_sum() -> None:
    rounded = SHARES.round(decimals=2)
    assert rounded.sum(1).min() < 0.995
    found, expected = measured(rounded), measured()
    for name, value in expected.first.values.items():
        near_0 = 5e-4 if name.endswith("_gap") else 0.0  # a small difference of two rates
        assert found.value(name) == pytest.approx(value, rel=0.02, abs=near_0), name
    assert found.first.confusion.sum() == pytest.approx(240)


SHARES_MUST_SUM_TO_1 = Refused("shares_of_annotators", "target")


@pytest.mark.parametrize(
    ("target", "arguments", "refusal"),
    [
        (
            0.9 * SHARES,
            {},
            Refused("shares_of_annotators", "target", (0.9 * SHARES[0]).tolist(), sample=0),
        ),
        (0.0 * SHARES, {}, SHARES_MUST_SUM_TO_1),
        (0.9 * SHARES, {"concern": None, "metrics": ["brier_score"]}, SHARES_MUST_SUM_TO_1),
        (2 * SHARES, {}, Refused("degrees", "target")),
        (SHARES, {"preds": A.log()}, Refused("probabilities", "preds")),
        (
            SHARES,
            {"metrics": ["calibration_slope"]},
            Refused("has_annotators", "", metrics="calibration_slope"),
        ),
        (
            SHARES,
            {"metrics": [MulticlassAUROC(3)]},
            Refused("has_annotators", "", metrics="MulticlassAUROC"),
        ),
        (
            SHARES,
            {"concern": ConcernRange([CONCERN], [DEARER])},
            Refused("annotators_of_ranges", ""),
        ),
        (SHARES, {"prevalence": [0.5, 0.3, 0.2]}, Refused("needs_classes", "prevalence")),
    ],
)
def test_what_does_not_fit_is_refused(
    target: Tensor, arguments: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        measured(target, **arguments)


def test_shares_of_thirds_have_no_negative_rates() -> None:
    concern = ConcernSpec(["a", "b", "c"], class_groups={"ill": ["b", "c"]})
    votes = torch.tensor([[1, 2, 0], [2, 1, 0], [0, 1, 2], [0, 2, 1]]).repeat(60, 1)
    clusters = torch.arange(240) // 4
    found = measured(votes.double() / 3, B, concern=concern, clusters=clusters)
    low, high = found.interval("specificity[ill]")
    assert 0 <= low <= found.value("specificity[ill]") <= high <= 1


def test_metrics_of_torchmetrics_count_shares_as_weights_and_annotators_who_agree_are_labels() -> (
    None
):
    sure = torch.eye(3).double()[TRUTH]
    of_labels = {"f1": MulticlassF1Score(3), "mcc": MulticlassMatthewsCorrCoef(3)}
    metrics = {**of_labels, "squares": MeanSquaredError()}
    hard, agreed = evaluate(A, TRUTH, metrics=of_labels), evaluate(A, sure, metrics=metrics)
    for name in of_labels:
        assert agreed.value(name) == pytest.approx(hard.value(name))
        assert agreed.interval(name) == pytest.approx(hard.interval(name), rel=1e-6)
    assert agreed.value("squares") == pytest.approx(float((A - sure).square().mean()))
    decided = A.argmax(1)[PLACES]
    expected = f1_score(CLASSES, decided, average="macro", sample_weight=WEIGHTS)
    shared = evaluate(A, SHARES, metrics=metrics)
    assert shared.value("f1") == pytest.approx(expected, rel=1e-6)
