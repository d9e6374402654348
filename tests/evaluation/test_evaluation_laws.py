"""Check laws of values, intervals and p-values, for every kind of rows with every kind of column.

Every metric of the register is in one of the kinds, with five metrics of torchmetrics.
"""

import pickle
from typing import Any, NamedTuple

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

from mpcs_torch import ConcernRange, ConcernSpec, Evaluation, evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.chosen import as_entries
from mpcs_torch.evaluation.metric_states import takes_weights
from mpcs_torch.metrics.find_entry import find_entry
from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.metrics.named_metrics import ENTRIES
from tests.evaluation.alike import (
    ROUNDING,
    assert_alike,
    assert_same_numbers,
    assert_same_scores,
)
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
OF_CLASSES = ("decisions", "probabilities", "log_probabilities")
METRICS = [find_entry(entry.name) for entry in ENTRIES if entry.takes in OF_CLASSES]
METRICS += as_entries(OF_TORCHMETRICS)
EXACT = [entry for entry in METRICS if entry.is_measure or entry.is_of_ranks]
BY_PARTS = [entry for entry in METRICS if entry not in EXACT]
"""Metrics whose intervals come from the values of parts of the rows."""
COUNTS = [entry.name for entry in METRICS if entry.is_count]
NEAR = 0.15
"""Of the width of an interval: by so much, ends that come from 64 or 128 parts of rows may differ."""
GROUPS = {"site": ["north" if row % 3 else "south" for row in range(ROWS)]}
PATIENTS, WEIGHTS = EVERY // 4, torch.rand(ROWS, generator=GENERATOR) + 0.1
CONCERN, DEARER = [
    ConcernSpec(
        CLASSES,
        weights=[[0, 1, 1, 4], [1, 0, 2, 1], [1, 1, 0, 1], [dearest, 9, 1, 0]],
        dangerous=4,
        refer=0.4,
        answers={"2 or 3": 0.2},
        class_groups={"high": ["2", "3"]},
    )
    for dearest in (20, 30)
]
DECISIONS = {
    name: torch.where(PATIENTS % 3 > 0, probs.argmax(1), EVERY % 6 - 1)
    for name, probs in MODELS.items()
}
SHARES = 0.7 * torch.eye(CLASSES).double()[TARGET] + 0.3 * MODELS["A"]
IMAGES = {
    name: torch.stack([probs, probs.flip(0)], 2).unsqueeze(3)
    for name, probs in MODELS.items()
}


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
    "scores": Kind(MODELS, TARGET, {"concern": CONCERN, "metrics": EXACT}, {}),
    "by parts": Kind(MODELS, TARGET, {"metrics": BY_PARTS}, {}),
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
    "ranges of costs": Kind(
        MODELS, TARGET, {"concern": ConcernRange([CONCERN], [DEARER])}, {}
    ),
    "positions": Kind(
        IMAGES,
        torch.stack([TARGET, TARGET.flip(0)], 1).unsqueeze(2),
        {"concern": CONCERN},
        {"has_positions": True},
    ),
}
COLUMNS: dict[str, dict[str, Any]] = {
    "rows": {},
    "groups of clusters": {"clusters": PATIENTS, "groups": GROUPS},
    "weights": {"weights": WEIGHTS},
    "frequencies": {"frequencies": EVERY % 3 + 1},
}
QUICK = [kind for kind in KINDS if kind not in ("by parts", "ranges of costs")]
each_kind = pytest.mark.parametrize(
    "kind", [*QUICK, pytest.param("by parts", marks=pytest.mark.slow)]
)


def at(rows: Tensor, columns: dict[str, Any]) -> dict[str, Any]:
    """Return some rows of columns."""
    part = {name: values[rows] for name, values in columns.items() if name != "groups"}
    if "groups" in columns:
        part["groups"] = {"site": [GROUPS["site"][row] for row in rows]}
    return part


def has_weights(entry: MetricEntry) -> bool:
    if isinstance(entry.of, str):
        return takes_weights(entry.make(CLASSES))
    return bool(entry.of.takes_weights)


def settings_of(kind: str, *, is_weighted: bool) -> dict[str, Any]:
    """Return the settings of a kind, without metrics that take no weights if rows have weights."""
    settings = dict(KINDS[kind].settings)
    if is_weighted and kind in ("scores", "by parts"):
        settings["metrics"] = [each for each in settings["metrics"] if has_weights(each)]
    return settings


def of_kind(name: str, rows: Tensor = EVERY, **columns: Any) -> Result[Any]:
    """Return the evaluation of some rows of a kind."""
    kind = KINDS[name]
    models = {model: preds[rows] for model, preds in kind.models.items()}
    costs = None if kind.costs is None else kind.costs[rows]
    given = {"costs": costs, **settings_of(name, is_weighted="weights" in columns)}
    return evaluate(models, kind.target[rows], **given, **at(rows, columns))


def near(kind: str) -> float:
    return NEAR if kind == "by parts" else ROUNDING


def same(kind: str, one: Result[Any], other: Result[Any]) -> None:
    """Compare all that two results of a kind tell; of intervals from parts, only that they are near."""
    assert_same_numbers(one, other, near=near(kind))
    if kind != "by parts":
        assert_alike(one.to_dict(), other.to_dict(), rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        *((kind, name) for kind in QUICK for name in COLUMNS),
        ("by parts", "rows"),
        ("ranges of costs", "groups of clusters"),
    ],
)
def test_parts_merge_to_the_whole(kind: str, columns: str) -> None:
    whole, given = KINDS[kind], COLUMNS[columns]
    is_weighted = "weights" in given
    settings = settings_of(kind, is_weighted=is_weighted)
    parts = []
    for rows in EVERY.tensor_split([130, 140]):
        part = Evaluation(CLASSES, is_weighted=is_weighted, **settings, **whole.facts)
        batch = at(rows, given)
        if whole.costs is not None:
            batch["costs"] = whole.costs[rows]
        models = {name: preds[rows] for name, preds in whole.models.items()}
        part.update(models, whole.target[rows], **batch)
        parts.append(part)
    for part in parts[1:]:
        parts[0].merge(pickle.loads(pickle.dumps(part)))
    same(kind, parts[0].result(), of_kind(kind, **given))


@each_kind
def test_models_may_be_evaluated_apart(kind: str) -> None:
    whole = KINDS[kind]
    parts = [Evaluation(CLASSES, **whole.settings, **whole.facts) for _ in MODELS]
    for part, (name, preds) in zip(parts, whole.models.items(), strict=True):
        part.update({name: preds}, whole.target, clusters=PATIENTS, costs=whole.costs)
    parts[0].merge(parts[1])
    same(kind, parts[0].result(), of_kind(kind, clusters=PATIENTS))


@each_kind
def test_swapped_models_differ_with_the_other_sign(kind: str) -> None:
    whole, swapped = KINDS[kind], dict(reversed(KINDS[kind].models.items()))
    other_way = evaluate(swapped, whole.target, costs=whole.costs, **whole.settings)
    for row, other in zip(of_kind(kind).comparisons, other_way.comparisons, strict=True):
        one, two = row.paired, other.paired
        assert (two.first, two.second) == pytest.approx((one.second, one.first))
        expected = (-one.difference, -one.high, -one.low)
        assert (two.difference, two.low, two.high) == pytest.approx(expected, rel=1e-5)
        assert two.p_value == pytest.approx(one.p_value, rel=1e-4)
        assert row.better == other.better


@each_kind
def test_a_group_has_the_numbers_of_its_rows_alone(kind: str) -> None:
    grouped = of_kind(kind, clusters=PATIENTS, groups=GROUPS)
    is_south = EVERY % 3 == 0
    alone = of_kind(kind, EVERY[is_south], clusters=PATIENTS)
    # The fewer clusters a group has, the more its intervals depend on their parts.
    share = 0.3 if kind == "by parts" else ROUNDING
    for model, scores in alone.models.items():
        assert_same_scores(grouped.scores(model, ("site", "south")), scores, near=share)
    by_metric = {row.by.metric: row.paired for row in alone.comparisons}
    for row in grouped.group_differences.get("site", ()):
        if row.group == "south" and kind != "by parts":
            expected = by_metric[row.comparison.by.metric]
            assert row.comparison.paired == pytest.approx(expected, rel=1e-4)


@each_kind
def test_clusters_of_one_row_are_no_clusters(kind: str) -> None:
    assert_same_numbers(of_kind(kind), of_kind(kind, clusters=EVERY), near=near(kind))


def test_one_pair_among_single_rows_changes_little() -> None:
    plain, pair = of_kind("scores"), of_kind("scores", clusters=(EVERY - 1).clamp(min=0))
    for model, scores in plain.models.items():
        assert_same_scores(pair.models[model], scores, near=0.1)
    # A further unit may be a pair in which the models differ twice, where differences are few.
    assert_same_numbers(plain, pair, near=0.5)


@each_kind
def test_rows_may_be_in_any_order(kind: str) -> None:
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))
    same(kind, of_kind(kind, clusters=PATIENTS), of_kind(kind, order, clusters=PATIENTS))


@each_kind
def test_only_ratios_of_weights_count(kind: str) -> None:
    one, other = [of_kind(kind, weights=scale * WEIGHTS) for scale in (0.01, 100.0)]
    assert_same_numbers(one, other, near=near(kind), skipped=COUNTS)


@each_kind
def test_rows_of_weight_0_say_nothing(kind: str) -> None:
    weights = torch.where(EVERY < 400, WEIGHTS, 0)
    some = of_kind(kind, EVERY[:400], weights=weights)
    assert_same_numbers(of_kind(kind, weights=weights), some, near=near(kind))


@pytest.mark.parametrize("kind", [*QUICK, "by parts"])
def test_weights_of_1_are_no_weights(kind: str) -> None:
    assert_same_numbers(
        of_kind(kind), of_kind(kind, weights=torch.ones(ROWS)), near=near(kind)
    )


@each_kind
def test_whole_weights_are_clusters_of_repeated_rows(kind: str) -> None:
    weights = EVERY % 3 + 1
    repeated = of_kind(kind, EVERY.repeat_interleave(weights), clusters=EVERY)
    # Means allow for one more bad row, not for as many as its weight says. A further row of a class may have the usual
    # weight of any row, a further cluster has the usual size of those with rows of the class.
    assert_same_numbers(
        of_kind(kind, weights=weights),
        repeated,
        near=max(near(kind), 0.05),
        skipped=COUNTS,
        one_end=[*MEANS, "regret"],
    )


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        *((kind, "groups of clusters") for kind in QUICK),
        ("scores", "rows"),
        ("scores", "weights"),
        ("decisions", "weights"),
        ("annotators", "weights"),
        pytest.param("by parts", "rows", marks=pytest.mark.slow),
    ],
)
def test_frequencies_are_repeated_rows(kind: str, columns: str) -> None:
    number = EVERY % 3 + 1
    counted = of_kind(kind, frequencies=number, **COLUMNS[columns])
    rows = EVERY.repeat_interleave(number)
    same(kind, counted, of_kind(kind, rows, **COLUMNS[columns]))
