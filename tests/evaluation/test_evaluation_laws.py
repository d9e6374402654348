"""Check laws of values, intervals and p-values for every metric of the register and five of torchmetrics."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCohenKappa,
    MulticlassHingeLoss,
    MulticlassJaccardIndex,
)

from mpcs_torch import Evaluation, evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.chosen import as_entries
from mpcs_torch.evaluation.metric_states import takes_weights
from mpcs_torch.functional.quality.scores import ClassCountMeasure
from mpcs_torch.metrics.find_entry import find_entry
from mpcs_torch.metrics.register import ENTRIES
from tests.evaluation.means import MEANS

ROWS, CLASSES = 600, 4
GENERATOR = torch.Generator().manual_seed(1)
TARGET = torch.randint(CLASSES, (ROWS,), generator=GENERATOR)
MODELS = {
    name: (
        torch.randn(ROWS, CLASSES, generator=GENERATOR).double()
        + skill * torch.eye(CLASSES)[TARGET]
    ).softmax(1)
    for name, skill in (("A", 1.5), ("B", 2.0))
}
OF_TORCHMETRICS = {
    "kappa": MulticlassCohenKappa(CLASSES, weights="quadratic"),
    "their_auroc": MulticlassAUROC(CLASSES),
    "their_average_precision": MulticlassAveragePrecision(CLASSES),
    "jaccard": MulticlassJaccardIndex(CLASSES),
    "hinge_loss": MulticlassHingeLoss(CLASSES),
}
KINDS = {"decisions", "probabilities", "log_probabilities"}
METRICS: list[Any] = [find_entry(entry.name) for entry in ENTRIES if entry.takes in KINDS]
METRICS += as_entries(OF_TORCHMETRICS)
WEIGHTED = [
    entry.name
    for entry in METRICS
    if (
        takes_weights(entry.make(5))
        if isinstance(entry.of, str)
        else entry.of.takes_weights
    )
]
BY_PARTS = {
    entry.name for entry in METRICS if not entry.is_measure and not entry.is_of_ranks
}
NEAR = 0.15
"""Of the width of an interval: by so much, ends that come from 64 or 128 parts of rows may differ."""


def result(
    rows: Tensor | slice = slice(None), names: list[str] | None = None, **given: Any
) -> Result:
    """Return the evaluation of some rows by all metrics, or by some."""
    metrics = [entry for entry in METRICS if names is None or entry.name in names]
    return evaluate(
        {name: probs[rows] for name, probs in MODELS.items()},
        TARGET[rows],
        metrics=metrics,
        **given,
    )


MEASURES = {entry.name: entry.make(4) for entry in METRICS if entry.is_measure}
AVERAGES = {"auroc"} | {
    name
    for name, measure in MEASURES.items()
    if isinstance(measure, ClassCountMeasure) and measure.interval_rule == "smooth"
}
"""Metrics whose differences allow for rows of each class that may be missing."""


def check(
    one: Result,
    other: Result,
    *,
    near: float = 0.0,
    of_differences: float = 0.0,
    skipped: Any = (),
    one_end: Any = (),
    unseen: float = 0.0,
) -> None:
    """Compare values, intervals, and comparisons; ends may differ by a share of the width, exact ones by rounding."""
    for model in MODELS:
        for name in one.models[model].values:
            if name in skipped:
                continue
            (value, ends, _), (other_value, other_ends, _) = (
                one.find(name, model),
                other.find(name, model),
            )
            assert other_value == pytest.approx(value, rel=1e-6, nan_ok=True), (
                name
            )  # a hinge loss is summed in float32
            assert (ends is None) == (other_ends is None), name
            if ends is not None and other_ends is not None and name in one_end:
                assert min(abs(a - b) for a, b in zip(ends, other_ends, strict=True)) < 1e-6
            elif ends is not None and other_ends is not None:
                assert other_ends == pytest.approx(
                    ends, abs=1e-6 + _share(name, near) * (ends[1] - ends[0])
                ), name
    for row, other_row in zip(one.comparisons, other.comparisons, strict=True):
        metric, paired = row.by.metric, row.paired
        if metric in skipped:
            continue
        assert (other_row.by.metric, other_row.first) == (metric, row.first)
        width = paired.high - paired.low
        share = max(
            _share(metric, near), of_differences, unseen if metric in AVERAGES else 0.0
        )
        assert other_row.paired[2:5] == pytest.approx(
            paired[2:5], abs=1e-6 + share * width
        ), metric
        if not share:
            assert other_row.paired.p_value == pytest.approx(paired.p_value, rel=1e-4), (
                metric
            )


def _share(name: str, near: float) -> float:
    return NEAR if name in BY_PARTS else near


@pytest.fixture(scope="module")
def plain() -> Result:
    return result()


@pytest.mark.slow
def test_clusters_of_one_row_each_are_none(plain: Result) -> None:
    check(plain, result(clusters=[f"row {row}" for row in range(ROWS)]))


def test_one_pair_among_single_rows_changes_little(plain: Result) -> None:
    # A further unit may be a pair in which the models differ twice, where differences are few.
    check(plain, result(clusters=[0, *range(ROWS - 1)]), near=0.1, of_differences=0.5)


@pytest.mark.slow
def test_the_order_of_rows_does_not_matter(plain: Result) -> None:
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))
    check(plain, result(order))
    patients = [f"patient {row // 2}" for row in range(ROWS)]
    by_patient, shuffled = (
        result(clusters=patients),
        result(order, clusters=[patients[row] for row in order.tolist()]),
    )
    check(by_patient, shuffled)
    for name in OF_TORCHMETRICS:  # clusters have names, so their parts are the same
        assert shuffled.interval(name, "A") == pytest.approx(
            by_patient.interval(name, "A"), rel=1e-4
        ), name


def test_halves_merge_to_the_whole(plain: Result) -> None:
    halves = [Evaluation(CLASSES, metrics=METRICS) for _ in range(2)]
    for half, rows in zip(halves, (slice(250), slice(250, ROWS)), strict=True):
        half.update({name: probs[rows] for name, probs in MODELS.items()}, TARGET[rows])
    halves[0].merge(halves[1])
    check(plain, halves[0].result())


def test_weights_of_1_are_none() -> None:
    check(result(names=WEIGHTED), result(names=WEIGHTED, weights=torch.ones(ROWS)))


@pytest.mark.slow
def test_whole_weights_are_repeated_rows_that_are_clustered() -> None:
    weights = torch.randint(1, 4, (ROWS,), generator=torch.Generator().manual_seed(2))
    rows = torch.arange(ROWS).repeat_interleave(weights)
    counts = {entry.name for entry in METRICS if entry.is_count}
    weighted, repeated = (
        result(names=WEIGHTED, weights=weights),
        result(rows, WEIGHTED, clusters=rows),
    )
    # One more bad row, not as many as its weight says; and rows that may be missing have the mean weight, or 1.
    check(weighted, repeated, skipped=counts, one_end=MEANS, unseen=0.02)


@pytest.mark.slow
def test_a_group_of_all_rows_is_all_of_them(plain: Result) -> None:
    grouped = result(groups={"site": ["north"] * ROWS})
    for model in MODELS:
        for name, value in plain.models[model].values.items():
            found, ends, _ = grouped.find(name, model, ("site", "north"))
            wanted = plain.interval(name, model)
            assert found == pytest.approx(value, rel=1e-6, nan_ok=True), name
            assert (ends is None) == (wanted is None), name
            if ends is not None and wanted is not None:
                assert ends == pytest.approx(
                    wanted, abs=1e-6 + _share(name, 0) * (wanted[1] - wanted[0])
                ), name


def test_swapped_models_differ_with_the_other_sign(plain: Result) -> None:
    swapped = evaluate(dict(reversed(MODELS.items())), TARGET, metrics=METRICS)
    for row, other in zip(plain.comparisons, swapped.comparisons, strict=True):
        one, two = row.paired, other.paired
        assert (two.first, two.second, two.difference) == pytest.approx(
            (one.second, one.first, -one.difference)
        )
        assert (-two.high, -two.low) == pytest.approx((one.low, one.high), rel=1e-5)
        assert two.p_value == pytest.approx(one.p_value, rel=1e-4)
        assert row.better == other.better
