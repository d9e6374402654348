"""The epoch that a rule picks; a selector during training never drops the epoch that it would pick afterwards."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2
from torchmetrics.classification import MulticlassAccuracy

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.functional.measure import Direction
from mpcs_torch.learning.selection import (
    AS_GOOD,
    Contenders,
    Epoch,
    SelectionRule,
    as_good_as,
    count_interval,
    explain,
)
from tests.refused import Refused

DIRECTIONS = {
    "mpcs": MetaPatternConcernScore,
    "accuracy": MulticlassAccuracy(num_classes=3),
}
NAN = float("nan")


def epochs(*values: tuple[float, float]) -> list[Epoch]:
    return [
        Epoch(i, {"mpcs": mpcs, "accuracy": accuracy})
        for i, (mpcs, accuracy) in enumerate(values, start=1)
    ]


def picked(rule: SelectionRule, among: list[Epoch]) -> list[int]:
    return [epoch.number for epoch in rule.ranking(among)]


values = st.one_of(st.integers(0, 6).map(lambda n: n / 4), st.just(NAN))


@given(
    runs=st.lists(st.tuples(values, values), min_size=1, max_size=8),
    slack=st.sampled_from([math.inf, 0.25, 0.0]),
    at_most=st.sampled_from([math.inf, 0.5]),
    at_least=st.sampled_from([-math.inf, 0.5]),
    ties=st.sampled_from(["first", "last", "accuracy"]),
)
def test_the_ranking_is_that_of_a_plain_sort(
    runs: list[tuple[float, float]],
    slack: float,
    at_most: float,
    at_least: float,
    ties: str,
) -> None:
    """NaN never wins, and takes no part in the best value that others must be near."""
    within = {} if math.isinf(slack) else {"accuracy": slack}
    lowest = {} if math.isinf(at_least) else {"accuracy": at_least}
    rule = SelectionRule(
        "mpcs",
        DIRECTIONS,
        within=within,
        at_most={"mpcs": at_most},
        at_least=lowest,
        ties=ties,
    )
    known = [right for _, right in runs if not math.isnan(right)]
    best = max(known, default=math.inf)
    allowed = list[tuple[float, float, int]]()
    for number, (mpcs, right) in enumerate(runs, start=1):
        is_known = not math.isnan(right)
        tied = {
            "first": number,
            "last": -number,
            "accuracy": -right if is_known else math.inf,
        }
        has_limits = bool(within or lowest)
        is_right = right >= max(best - slack, at_least) if has_limits else True
        if mpcs <= at_most and is_right:
            allowed.append((mpcs, tied[ties], number))
    assert picked(rule, epochs(*runs)) == [number for *_, number in sorted(allowed)]


@pytest.mark.parametrize("samples", [50, 100, 200, 400, 999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_epoch_at_a_limit_is_within_it_whatever_the_rounding(
    samples: int, dtype: torch.dtype
) -> None:
    def share(right: int) -> float:
        """Divide as tensors of this type do."""
        return (torch.tensor(right, dtype=dtype) / samples).item()

    slack = 5 / samples
    for right in range(samples // 2, samples + 1):
        best, at_limit, below = right / samples, share(right - 5), share(right - 6)
        runs = epochs((0.3, best), (0.2, at_limit), (0.1, below))
        assert picked(
            SelectionRule("mpcs", DIRECTIONS, within={"accuracy": slack}), runs
        ) == [2, 1]
        limit = (right - 5) / samples
        assert picked(
            SelectionRule("mpcs", DIRECTIONS, at_least={"accuracy": limit}), runs
        ) == [2, 1]


@pytest.mark.parametrize(
    ("kind", "name", "refusal"),
    [
        ("at_most", "accuracy", Refused("limit_of_best", "at_most", name="accuracy")),
        ("at_least", "mpcs", Refused("limit_of_best", "at_least", other="at_most")),
        (
            "at_least",
            "acuracy",
            Refused("misspelt_limit", "at_least", suggestion="did you mean accuracy?"),
        ),
    ],
)
def test_a_limit_that_no_epoch_can_mean_is_refused_before_the_first(
    kind: str, name: str, refusal: Refused
) -> None:
    directions = {"mpcs": MetaPatternConcernScore(num_classes=3), "accuracy": "max"}
    limits: Any = {kind: {name: 0.5}}
    with refusal:
        SelectionRule("mpcs", directions, **limits)
    undirected: Any = {kind: {"calibration_slope": 1.1}}
    SelectionRule("mpcs", directions, **undirected)


@given(
    runs=st.lists(st.tuples(values, values), min_size=1, max_size=12),
    slack=st.sampled_from([0.0, 0.25, 0.5]),
    places=st.integers(1, 3),
    ties=st.sampled_from(["first", "last", "accuracy"]),
    constrained=st.booleans(),
)
def test_keeping_what_could_win_loses_no_pick(
    runs: list[tuple[float, float]], slack: float, places: int, ties: str, constrained: bool
) -> None:
    within = {"accuracy": slack} if constrained else {}
    rule = SelectionRule(
        "mpcs", {"mpcs": "min", "accuracy": "max"}, within=within, ties=ties
    )
    seen = epochs(*runs)
    contenders, limited = Contenders(rule, places), Contenders(rule, places, places + 1)
    for count, epoch in enumerate(seen, start=1):
        contenders, limited = contenders.add(epoch), limited.add(epoch)
        ranking = [each.number - 1 for each in rule.ranking(seen[:count])]
        assert (
            ranking[:places]
            == [place for place in ranking if place in contenders.places_kept][:places]
        )
        assert contenders.pick == (ranking[0] if ranking else None)
        assert len(limited.places_kept) <= places + 1
        if limited.places_kept == contenders.places_kept:
            assert limited.pick == contenders.pick
    if not constrained:
        assert contenders == replace(limited, max_count=None)


@given(
    losses=st.lists(st.integers(0, 8).map(lambda n: n / 8) | st.just(NAN), max_size=15),
    min_delta=st.sampled_from([0.0, 0.125, 0.3]),
    way=st.sampled_from(["min", "max"]),
)
def test_waiting_is_counted_as_early_stopping_of_lightning_counts_it(
    losses: list[float], min_delta: float, way: Direction
) -> None:
    contenders = Contenders(SelectionRule("mine", {"mine": way}), 1, min_delta=min_delta)
    best, waited = math.inf, 0
    for i, loss in enumerate(losses):
        contenders = contenders.add(Epoch(i, {"mine": loss if way == "min" else -loss}))
        if loss < best - min_delta:
            best, waited = loss, 0
        else:
            waited += 1
        assert contenders.waited == waited


def test_each_metric_has_its_own_pick() -> None:
    runs = epochs((0.3, 0.7), (0.2, 0.6), (NAN, NAN))
    table = explain(SelectionRule("mpcs", DIRECTIONS, at_least={"accuracy": 0.65}), runs)
    assert list(table.header) == ["picked by", "epoch", "mpcs", "accuracy"]
    assert [row[:2] for row in table.rows] == [
        ["the rule", "1"],
        ["mpcs", "2"],
        ["accuracy", "1"],
    ]


@given(st.integers(0, 60), st.integers(61, 4000))
def test_the_interval_of_a_count_is_that_of_poisson_and_holds_that_of_a_rate(
    count: int, samples: int
) -> None:
    low, high = count_interval(count)
    assert high == pytest.approx(chi2.ppf(0.975, 2 * count + 2) / 2)
    assert low == pytest.approx(chi2.ppf(0.025, 2 * count) / 2 if count else 0)
    rate = binomtest(count, samples).proportion_ci(0.95, "exact")
    assert high >= samples * rate.high
    if samples >= 20 * count:  # rare
        assert low <= samples * rate.low * 1.001


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_epochs_are_told_apart_only_where_any_overlap_of_their_errors_does(
    first: int, second: int, shared: int
) -> None:
    pick = Epoch(0, {"dangerous": float(first)})
    other = Epoch(1, {"dangerous": float(second)})
    is_told = not as_good_as([pick, other], "dangerous", pick)
    only = min(first, second)
    assert is_told == (
        first + second > 0 and binomtest(only, first + second).pvalue <= 0.05
    )
    overlap = min(shared, only)
    if is_told:  # McNemar's test by the errors that one epoch alone makes
        assert binomtest(only - overlap, first + second - 2 * overlap).pvalue <= 0.05


def test_a_count_has_its_interval_and_names_the_epochs_that_it_does_not_tell_apart() -> (
    None
):
    values = [(29, 0.95), (5, 0.955), (4, 0.953), (12, 0.955), (3, 0.90), (NAN, 0.95)]
    runs = [
        Epoch(i, {"dangerous": errors, "accuracy": right})
        for i, (errors, right) in enumerate(values)
    ]
    rule = SelectionRule(
        "dangerous", {"dangerous": "min", "accuracy": "max"}, within={"accuracy": 0.01}
    )
    rows = {row["picked by"]: row for row in explain(rule, runs).records()}
    assert rows["the rule"]["dangerous"] == "4 [1.09, 10.2]"
    assert rows["the rule"][AS_GOOD] == "1, 3 (2 epochs)"  # 4 of 16 and 4 of 33 errors
    assert rows["dangerous"]["dangerous"] == "3 (-1) [0.619, 8.77]"
    # Epochs outside of the limits of the rule are ranked, too.
    assert rows["dangerous"][AS_GOOD] == "1 to 3 (3 epochs)"
    assert rows["accuracy"][AS_GOOD] == ""


def test_of_equally_good_epochs_none_is_missing() -> None:
    """Although the pick is the lowest of 30 counts."""
    counts = torch.poisson(
        torch.full((1000, 30), 40.0), generator=torch.Generator().manual_seed(0)
    )
    complete = 0
    for row in counts.tolist():
        epochs = [Epoch(i, {"dangerous": count}) for i, count in enumerate(row)]
        complete += (
            len(
                as_good_as(
                    epochs,
                    "dangerous",
                    min(epochs, key=lambda epoch: epoch.values["dangerous"]),
                )
            )
            == 29
        )
    assert complete / 1000 >= 0.95


@pytest.mark.parametrize(
    ("column", "way", "is_count"),
    [
        ([3, 0, 5], "min", True),
        ([3, NAN, 5], "min", True),
        ([3, 0, 5], "max", False),
        ([0.5, 2, 3], "min", False),
        ([0, 1, 0], "min", False),  # a rate of few samples may be so
        ([-1, 2, 3], "min", False),
        ([NAN, NAN, math.inf], "min", False),
    ],
)
def test_counts_are_whole_in_every_epoch(
    column: list[float], way: Direction, is_count: bool
) -> None:
    runs = [Epoch(i, {"mine": value}) for i, value in enumerate(column)]
    table = explain(SelectionRule("mine", {"mine": way}), runs)
    assert (
        (AS_GOOD in table.header)
        == is_count
        == ("[" in table.rows[0][2] if table.rows else False)
    )


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"by": "loss"}, Refused("direction_of", "directions", name="loss")),
        ({"within": {"f1": 0.1}}, Refused("directions_of", "within", without="f1")),
        ({"within": {"accuracy": -0.1}}, Refused("distances", "within")),
        ({"within": {"accuracy": math.nan}}, Refused("distances", "within")),
        ({"at_most": {"mpcs": "0.5"}}, Refused("number", "at_most of mpcs")),
        ({"at_most": {"mpcs": None}}, Refused("number", "at_most of mpcs")),
        ({"at_most": {"mpcs": torch.zeros(2)}}, Refused("number", "at_most of mpcs")),
        ({"at_most": {"mpcs": math.nan}}, Refused("no_nan", "at_most")),
        ({"ties": "best"}, Refused("one_of", "ties", "best")),
        ({"directions": {"mpcs": "lower"}}, Refused("direction", "the direction of mpcs")),
        ({"directions": {"mpcs": None}}, Refused("direction", "the direction of mpcs")),
    ],
)
def test_an_incomplete_or_wrong_rule_is_refused(
    arguments: dict[str, object], refusal: Refused
) -> None:
    with refusal:
        SelectionRule(**{"by": "mpcs", "directions": DIRECTIONS, **arguments})  # type: ignore[arg-type]


def test_a_rule_that_no_epoch_keeps_has_a_row_of_its_own() -> None:
    rule = SelectionRule(
        "accuracy", {"accuracy": "max", "dangerous": "min"}, at_most={"dangerous": 1}
    )
    epochs = [Epoch(number, {"accuracy": 0.9, "dangerous": 5}) for number in (1, 2)]
    first, *others = explain(rule, epochs).rows
    assert first[:2] == ["the rule", "none is within its limits"]
    assert [row[0] for row in others] == ["accuracy", "dangerous"]
    assert not explain(rule, []).rows  # before the first epoch, no limit is broken
