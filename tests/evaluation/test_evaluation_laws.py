"""Check laws of values, intervals and p-values: for every metric of the register and five of torchmetrics, and for
every kind of rows with every kind of column."""

import pickle
from typing import Any, NamedTuple

import pytest
import torch
from pandas.testing import assert_frame_equal
from torch import Tensor
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCohenKappa,
    MulticlassHingeLoss,
    MulticlassJaccardIndex,
)

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.chosen import as_entries
from mpcs_torch.evaluation.metric_states import takes_weights
from mpcs_torch.functional.quality.scores import ClassCountMeasure
from mpcs_torch.metrics.find_entry import find_entry
from mpcs_torch.metrics.register import ENTRIES
from tests.evaluation.alike import assert_alike
from tests.evaluation.means import MEANS

ROWS, CLASSES = 600, 4
EVERY = torch.arange(ROWS)
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
            # A hinge loss is summed in float32.
            assert other_value == pytest.approx(value, rel=1e-6, nan_ok=True), name
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
    by_patient = result(clusters=patients)
    shuffled = result(order, clusters=[patients[row] for row in order.tolist()])
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
    weighted = result(names=WEIGHTED, weights=weights)
    repeated = result(rows, WEIGHTED, clusters=rows)
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


COUNTS = [entry.name for entry in METRICS if entry.is_count]
KEYS, NUMBERS = ["model", "column", "group", "metric"], ["value", "low", "high", "p_value"]
GROUPS = {"site": ["north" if row % 3 else "south" for row in range(ROWS)]}
PATIENTS, WEIGHTS = torch.arange(ROWS) // 4, torch.rand(ROWS, generator=GENERATOR) + 0.1
CONCERN = ConcernSpec(
    CLASSES,
    weights=[[0, 1, 1, 4], [1, 0, 2, 1], [1, 1, 0, 1], [20, 9, 1, 0]],
    dangerous=4,
    refer=0.4,
    answers={"2 or 3": 0.2},
    class_groups={"high": ["2", "3"]},
)
DECISIONS = {
    name: torch.where(PATIENTS % 3 > 0, probs.argmax(1), torch.arange(ROWS) % 6 - 1)
    for name, probs in MODELS.items()
}
SHARES = 0.7 * torch.eye(CLASSES).double()[TARGET] + 0.3 * MODELS["A"]


class Kind(NamedTuple):
    """Rows of a kind: the predictions of two models, what is true, and what else is given."""

    models: dict[str, Tensor]
    target: Tensor
    settings: dict[str, Any]
    """Arguments of both `evaluate` and `Evaluation`."""
    facts: dict[str, bool]
    """The arguments that `Evaluation` needs, because it sees no rows when it begins."""
    costs: Tensor | None = None


KINDS = {
    "scores": Kind(MODELS, TARGET, {"concern": CONCERN}, {}),
    "decisions": Kind(
        DECISIONS, TARGET, {"concern": CONCERN}, {"is_decided": True, "refers": True}
    ),
    "annotators": Kind(MODELS, SHARES, {"concern": CONCERN}, {"is_soft": True}),
    "degrees of truth": Kind(MODELS, SHARES, {}, {"is_soft": True}),
    "costs": Kind(
        MODELS,
        TARGET,
        {"metrics": ["mean_cost", "regret"]},
        {"has_costs": True},
        9 * torch.rand(ROWS, CLASSES, generator=GENERATOR) - 1,
    ),
}
COLUMNS: dict[str, dict[str, Any]] = {
    "rows": {},
    "groups of clusters": {"clusters": PATIENTS, "groups": GROUPS},
    "weights": {"weights": WEIGHTS},
    "frequencies": {"frequencies": torch.arange(ROWS) % 3 + 1},
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_column = pytest.mark.parametrize("columns", COLUMNS)


def at(rows: Tensor, columns: dict[str, Any]) -> dict[str, Any]:
    """Return some rows of columns."""
    part = {name: values[rows] for name, values in columns.items() if name != "groups"}
    if "groups" in columns:
        part["groups"] = {"site": [GROUPS["site"][row] for row in rows]}
    return part


def of_kind(name: str, rows: Tensor = EVERY, **columns: Any) -> Result:
    """Return the evaluation of some rows of a kind."""
    kind = KINDS[name]
    models = {model: preds[rows] for model, preds in kind.models.items()}
    costs = None if kind.costs is None else kind.costs[rows]
    given = {"costs": costs, **kind.settings, **at(rows, columns)}
    return evaluate(models, kind.target[rows], **given)


def same(one: Result, other: Result) -> None:
    assert_alike(one.to_dict(), other.to_dict(), rel=1e-5)


def same_numbers(one: Result, other: Result, *, skipped: Any = ()) -> None:
    """Compare the values, intervals and p-values that both results have."""
    frames = [each.to_frame().set_index(KEYS)[NUMBERS] for each in (one, other)]
    frames = [each[~each.index.isin(skipped, level="metric")] for each in frames]
    index = frames[0].index.intersection(frames[1].index)
    assert len(index) > 2
    assert_frame_equal(*(each.loc[index] for each in frames), rtol=1e-4, atol=1e-6)


@each_column
@each_kind
def test_parts_of_any_kind_merge_to_the_whole(kind: str, columns: str) -> None:
    whole, given = KINDS[kind], COLUMNS[columns]
    parts = []
    for rows in EVERY.tensor_split([130, 140]):
        is_weighted = "weights" in given
        part = Evaluation(CLASSES, is_weighted=is_weighted, **whole.settings, **whole.facts)
        batch = at(rows, given)
        if whole.costs is not None:
            batch["costs"] = whole.costs[rows]
        models = {name: preds[rows] for name, preds in whole.models.items()}
        part.update(models, whole.target[rows], **batch)
        parts.append(part)
    for part in parts[1:]:
        parts[0].merge(pickle.loads(pickle.dumps(part)))
    same(parts[0].result(), of_kind(kind, **given))


@each_kind
def test_models_of_any_kind_may_be_evaluated_apart(kind: str) -> None:
    whole = KINDS[kind]
    parts = [Evaluation(CLASSES, **whole.settings, **whole.facts) for _ in MODELS]
    for part, (name, preds) in zip(parts, whole.models.items(), strict=True):
        part.update({name: preds}, whole.target, clusters=PATIENTS, costs=whole.costs)
    parts[0].merge(parts[1])
    same(parts[0].result(), of_kind(kind, clusters=PATIENTS))


@each_kind
def test_a_group_has_the_numbers_of_its_rows_alone(kind: str) -> None:
    grouped = of_kind(kind, clusters=PATIENTS, groups=GROUPS)
    is_south = torch.tensor([site == "south" for site in GROUPS["site"]])
    alone = of_kind(kind, EVERY[is_south], clusters=PATIENTS)
    for model, scores in alone.models.items():
        of_group = grouped.scores(model, ("site", "south"))
        for name, value in of_group.values.items():
            assert value == pytest.approx(scores.values[name], rel=1e-6, nan_ok=True), name
            ends, wanted = of_group.intervals.get(name), scores.intervals.get(name)
            assert ends == (None if wanted is None else pytest.approx(wanted, rel=1e-6)), (
                name
            )


@each_kind
def test_clusters_of_one_row_are_no_clusters(kind: str) -> None:
    same_numbers(of_kind(kind), of_kind(kind, clusters=EVERY))


@each_kind
def test_rows_of_any_kind_may_be_in_any_order(kind: str) -> None:
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))
    same(of_kind(kind, clusters=PATIENTS), of_kind(kind, order, clusters=PATIENTS))


@each_kind
def test_only_ratios_of_weights_count(kind: str) -> None:
    one, other = (of_kind(kind, weights=scale * WEIGHTS) for scale in (0.01, 100.0))
    same_numbers(one, other, skipped=COUNTS)


@each_kind
def test_rows_of_weight_0_say_nothing(kind: str) -> None:
    weights = torch.where(EVERY < 400, WEIGHTS, 0)
    same_numbers(
        of_kind(kind, weights=weights), of_kind(kind, EVERY[:400], weights=weights)
    )


@each_kind
def test_weights_of_1_are_no_weights(kind: str) -> None:
    same_numbers(of_kind(kind), of_kind(kind, weights=torch.ones(ROWS)))


@each_kind
def test_whole_weights_are_clusters_of_repeated_rows(kind: str) -> None:
    weights = EVERY % 3 + 1
    rows = EVERY.repeat_interleave(weights)
    weighted = of_kind(kind, weights=weights)
    repeated = of_kind(kind, rows, clusters=EVERY)
    # Means allow for one more bad row, not for as many as its weight says.
    skipped = [*COUNTS, *MEANS, "regret"]
    same_numbers(weighted, repeated, skipped=skipped)
