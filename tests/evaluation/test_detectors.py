"""Values of detectors are those of the functions; their intervals and differences those of naive loops."""

import re
from functools import partial
from math import hypot, log
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_curve
from torch import Tensor
from torch.nn.functional import softplus

from benchmarks import coverage
from mpcs_torch import functional
from mpcs_torch.evaluation import evaluate_detectors
from mpcs_torch.evaluation.detector_scores import CHOSEN_HERE
from mpcs_torch.evaluation.fixed_thresholds import (
    FixedThreshold,
    given_threshold,
    learned_thresholds,
    point_key,
)
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.functional import OperatingPoint, clopper_pearson, sign_flip_test
from tests.evaluation.alike import assert_same_numbers, assert_same_scores
from tests.oracles import naive_detection
from tests.refused import Refused

EQUAL_ERROR, INTERPOLATED, AREA, CLLR = (
    "equal_error_rate",
    "equal_error_rate_interpolated",
    "auroc",
    "cllr",
)
POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=2.0)]


def trials(
    size: int = 300, seed: int = 0, distance: float = 2.0
) -> tuple[dict[str, Tensor], Tensor]:
    """Two detectors of the same trials, the second a little better; a third of the trials are targets."""
    labels = torch.arange(size) % 3 == 0
    shared, *alone = torch.randn(
        3, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    rise = torch.where(labels, 0.5, -0.5)
    gaps = {"A": distance, "B": distance + 0.3}
    return {
        name: gap * (shared + 0.5 * noise + gap * rise)
        for (name, gap), noise in zip(gaps.items(), alone, strict=True)
    }, labels


@pytest.mark.parametrize(
    "thresholds",
    [0.7, [0.7], {"A": 0.7, "B": 0.7}, given_threshold(0.7, POINTS)],
    ids=["a number", "numbers", "of each", "fixed"],
)
def test_values_are_those_of_the_functions(thresholds: Any) -> None:
    scores, labels = trials()
    result = evaluate_detectors(
        scores,
        labels,
        points=POINTS,
        llr=["A"],
        thresholds=thresholds,
        p_fa=[0.1],
        max_p_fa=0.1,
    )
    for name, each in scores.items():
        p_fa, detected, _ = roc_curve(labels, each, drop_intermediate=False)
        functions: dict[str, Any] = {
            EQUAL_ERROR: functional.equal_error_rate,
            INTERPOLATED: partial(functional.equal_error_rate, method="interpolated"),
            AREA: functional.partial_auc,
            "auroc[p_fa=0.1]": partial(functional.partial_auc, max_p_fa=0.1),
            "h_measure": functional.h_measure,
            "precision_recall_break_even": functional.precision_recall_break_even,
            "min_cllr": functional.min_cllr,
            "half_total_error_rate[threshold=0.7]": partial(
                functional.half_total_error_rate, threshold=0.7
            ),
        }
        actual_cost = functional.actual_detection_cost
        for point in POINTS:
            key = point_key(point)
            functions[f"min_cost[{key}]"] = partial(
                functional.min_detection_cost, points=point
            )
            functions[f"cost[threshold=0.7,{key}]"] = partial(
                actual_cost, points=point, threshold=0.7
            )
            if name == "A":
                functions[f"actual_cost[{key}]"] = partial(actual_cost, points=point)
        expected = {metric: of(each, labels).item() for metric, of in functions.items()}
        expected["miss_rate[p_fa=0.1]"] = 1 - detected[p_fa <= 0.1].max()
        for rate in (0.05, 0.01):
            expected[f"false_alarm_rate[p_miss={rate}]"] = p_fa[detected >= 1 - rate].min()
        if name == "A":
            expected[CLLR] = functional.cllr(each, labels).item()
            expected["calibration_loss"] = expected[CLLR] - expected["min_cllr"]
        assert result.models[name].values == pytest.approx(expected)


def test_rates_and_costs_at_thresholds_have_exact_intervals() -> None:
    scores, labels = trials()
    rates = [
        FixedThreshold(name, name, 0.7, name) for name in ("miss rate", "false-alarm rate")
    ]
    found = evaluate_detectors(
        scores["A"],
        labels,
        points=POINTS,
        thresholds=[*given_threshold(0.7, POINTS), *rates],
    ).first
    misses = int((scores["A"][labels] < 0.7).sum())
    alarms = int((scores["A"][~labels] >= 0.7).sum())
    exact = [
        pytest.approx(clopper_pearson(*pair)) for pair in ((misses, 100), (alarms, 200))
    ]
    assert [found.intervals[rate.name] for rate in rates] == exact
    weights = {"half_total_error_rate[threshold=0.7]": [0.5, 0.5]}
    for point in POINTS:
        name = f"cost[threshold=0.7,{point_key(point)}]"
        weights[name] = [weight / min(point.weights) for weight in point.weights]
        assert [found.errors[name].miss_rate, found.errors[name].false_alarm_rate] == exact
    for name, pair in weights.items():
        expected = naive_detection.cost_interval((misses, 100), (alarms, 200), pair)
        assert found.intervals[name] == pytest.approx(expected)


@pytest.mark.parametrize("distance", [2.0, 3.5])
def test_the_interval_of_the_equal_error_rate_comes_from_shifted_curves(
    distance: float,
) -> None:
    """Each rate is put at an end of its interval at every threshold; the shifted equal error rates are combined."""
    scores, labels = trials(distance=distance)
    curve = functional.detection_curve(scores["A"], labels)
    ways = {}
    for name, rates, number in (("miss", curve.p_miss, 100), ("alarm", curve.p_fa, 200)):
        counts = (number * rates).round().int().tolist()
        ways[name] = [
            *zip(*[clopper_pearson(count, number) for count in counts], strict=True),
            rates.tolist(),
        ]

    def crossing(of_miss: int, of_alarm: int) -> float:
        """Return the rate where both curves cross; each is that of an end of its interval, or -1 for its values."""
        gap = np.subtract(ways["miss"][of_miss], ways["alarm"][of_alarm])
        return float(np.interp(0, gap, ways["miss"][of_miss]))

    equal = crossing(-1, -1)
    below, above = [
        hypot(equal - crossing(end, -1), equal - crossing(-1, end)) for end in (0, 1)
    ]
    ends = max(equal - below, crossing(0, 0)), min(equal + above, crossing(1, 1))
    found = evaluate_detectors(scores["A"], labels).first
    assert found.values[INTERPOLATED] == pytest.approx(equal)
    for name in (INTERPOLATED, EQUAL_ERROR):
        assert found.intervals[name] == pytest.approx(ends)


def of_pairs(targets: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the share of the other kind that each target, and each non-target, is ranked rightly with."""
    is_right = (targets.unsqueeze(1) > others).double()
    return is_right.mean(1), is_right.mean(0)


def of_losses(targets: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bits that each target, and each non-target, costs, so that their means add up to Cllr."""
    return softplus(-targets) / log(4), softplus(others) / log(4)


@pytest.mark.parametrize(("name", "parts_of"), [(AREA, of_pairs), (CLLR, of_losses)])
def test_areas_and_cllr_have_the_variance_of_both_kinds_and_allow_for_a_further_trial(
    name: str, parts_of: Any
) -> None:
    scores, labels = trials(distance=1.2)
    result = evaluate_detectors(scores, labels, llr=True)
    first, second = [parts_of(each[labels], each[~labels]) for each in scores.values()]

    def half(parts: Any) -> float:
        """Return half the width of an interval by the t distribution."""
        variance = sum(part.var() / len(part) for part in parts)
        return float(stats.t.ppf(0.975, 99) * variance.sqrt())

    value, width = result.value(name, model="A"), half(first)
    low, high = result.interval(name, model="A")
    assert 2 * width < high - low < 4 * width
    assert low < value - 0.8 * width < value + 0.8 * width < high
    [row] = [row.paired for row in result.comparisons if row.by.metric == name]
    assert (row.first, row.second) == (value, result.value(name, model="B"))
    width = half([one - other for one, other in zip(second, first, strict=True)])
    quantile = stats.t.ppf(0.975, 99)
    ends = (row.difference - width, row.difference + width)
    assert (row.low, row.high) == pytest.approx(ends, abs=1.5 * width / quantile)
    p_value = 2 * stats.t.sf(quantile * abs(row.difference) / width, 99)
    assert row.p_value == pytest.approx(p_value, rel=0.4)


def test_wrong_decisions_of_independent_trials_are_tested_by_flips_of_errors() -> None:
    scores, labels = trials()
    result = evaluate_detectors(scores, labels, points=POINTS[:1], thresholds=0.0)
    [row] = [
        row.paired
        for row in result.comparisons
        if row.measure.startswith("rate of wrong decisions")
    ]
    first, second = [((each >= 0) != labels).double() for each in scores.values()]
    assert row.p_value == pytest.approx(sign_flip_test(first - second))
    assert (row.first, row.second) == (first.mean(), second.mean())


@pytest.mark.parametrize(
    ("llr", "is_compared"), [(True, True), (["A"], False), (False, False)]
)
def test_costs_in_bits_are_compared_if_both_detectors_have_ratios(
    llr: Any, is_compared: bool
) -> None:
    scores, labels = trials()
    pair = {name: scores[name] for name in "AB"}
    result = evaluate_detectors(pair, labels, points=POINTS, llr=llr)
    assert (CLLR in [row.by.metric for row in result.comparisons]) == is_compared


@pytest.mark.parametrize("improved", [1, 5, 9])
@pytest.mark.parametrize("per_cluster", [1, 3])
def test_only_units_in_which_detectors_differ_count_in_the_test_of_their_difference(
    improved: int, per_cluster: int
) -> None:
    """If each of n units improves, a random change of places is as good for 2 of the 2^n signs."""
    scores, labels = trials(90)
    first = scores["A"]
    second = first.clone()
    places = per_cluster * torch.arange(improved)
    rise = 0.1 * (1 + torch.arange(improved)) * torch.where(labels[places], 1, -1)
    second[places] += rise
    result = evaluate_detectors(
        {"A": first, "B": second},
        labels,
        points=POINTS,
        llr=True,
        clusters=None if per_cluster == 1 else torch.arange(90) // per_cluster,
    )
    [bits] = [row.paired for row in result.comparisons if row.by.metric == CLLR]
    assert bits.difference < 0
    assert bits.p_value == pytest.approx(2.0 ** (1 - improved))


@pytest.mark.parametrize(
    ("number", "clusters", "unit"),
    [
        (10, None, None),
        (9, None, "trials"),
        (90, torch.arange(90) % 9, "clusters"),
        (90, torch.arange(90) % 10, None),
    ],
)
def test_intervals_need_ten_units_and_say_of_what(
    number: int, clusters: Tensor | None, unit: str | None
) -> None:
    scores, labels = trials(90)
    found = evaluate_detectors(
        scores["B"][:number], labels[:number], points=POINTS, llr=True, clusters=clusters
    ).first
    for name in (AREA, CLLR):
        reason = found.without_interval.get(name)
        expected = None if unit is None else Reason("few_units", unit, 10)
        assert reason == expected
        assert (name in found.intervals) == (unit is None)


@pytest.mark.filterwarnings("ignore:the area under the ROC")
@settings(max_examples=15)
@given(st.data())
def test_an_interval_of_a_difference_that_contradicts_its_p_value_is_said_to(
    data: st.DataObject,
) -> None:
    size = data.draw(st.integers(4, 60))
    rows = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    labels = torch.arange(size) % 2 == 0
    result = evaluate_detectors(
        {name: torch.tensor(data.draw(rows)).double() + labels for name in "AB"},
        labels,
        llr=True,
        thresholds=0.0,
        clusters=data.draw(st.sampled_from([None, torch.arange(size) // 3])),
        points=POINTS,
    )
    for row in result.comparisons:
        low, high = row.paired.low, row.paired.high
        assert low <= row.paired.difference <= high
        if (row.adjusted_p_value <= 0.05) != (low > 0 or high < 0):
            assert "by another method" in row.verdict or "after correction" in row.verdict


def test_costs_of_few_errors_are_starred_and_other_values_are_not() -> None:
    scores, labels = trials(60)
    found = evaluate_detectors(scores["A"], labels, points=POINTS[:1]).first
    costs = {entry.name for entry in found.entries if entry.is_cost}
    starred = {str(name) for name, value, *_ in found.table().rows if "*" in str(value)}
    assert starred == costs != set()


@pytest.mark.parametrize("seed", [0, 6, 12, 17])
def test_equal_error_rates_of_few_errors_differ_only_where_their_interval_says_so(
    seed: int,
) -> None:
    """With one error of a target, flips of errors found a difference of equally good detectors in 16 % of draws."""
    sample = coverage.trials(6.2, 0.1)(10_000, torch.Generator().manual_seed(seed))
    result = evaluate_detectors(sample.preds, sample.target)
    [row] = [row.paired for row in result.comparisons if row.by.metric == INTERPOLATED]
    has_no_difference = row.low <= 0 <= row.high
    assert has_no_difference or row.p_value <= 0.05
    assert not has_no_difference or row.p_value >= 0.05 - 1e-9


def test_repeated_trials_of_a_cluster_say_no_more_than_one() -> None:
    scores, labels = trials(90)
    options: Any = {"points": POINTS, "llr": True, "thresholds": 0.7}
    once = evaluate_detectors(scores, labels, clusters=range(90), **options)
    often = evaluate_detectors(
        {name: each.repeat(4) for name, each in scores.items()},
        labels.repeat(4),
        clusters=[*range(90)] * 4,
        **options,
    )
    errors = "precision_recall_break_even"  # a number of errors
    assert_same_numbers(once, often, skipped=[errors])
    assert often.value(errors, "A") == pytest.approx(4 * once.value(errors, "A"))
    alone = evaluate_detectors(scores, labels, **options)
    for name in ("half_total_error_rate[threshold=0.7]", EQUAL_ERROR):
        low, high = alone.models["A"].intervals[name]
        near = pytest.approx((low, high), abs=0.2 * (high - low))
        assert once.interval(name, model="A") == near


def test_minima_have_no_interval_and_say_why() -> None:
    scores, labels = trials()
    found = evaluate_detectors(scores["A"], labels, llr=True, points=POINTS).first
    reasons = found.without_interval.items()
    assert {name for name, why in reasons if why == CHOSEN_HERE} == {
        *(f"min_cost[{point_key(point)}]" for point in POINTS),
        *(f"false_alarm_rate[p_miss={rate}]" for rate in (0.01, 0.05)),
        "min_cllr",
        "calibration_loss",
    }
    bare = evaluate_detectors(scores, labels, intervals=False)
    assert not bare.comparisons
    assert not {*bare.first.intervals, *bare.first.without_interval}


def test_groups_have_values_and_intervals_of_their_own() -> None:
    scores, labels = trials()
    clusters, rows = torch.arange(300) // 3, torch.arange(0, 299, 2)
    result = evaluate_detectors(
        scores,
        labels,
        groups={"kind": [*"ab" * 149, "a", "alone"]},
        clusters=clusters,
        llr=True,
    )
    alone = evaluate_detectors(
        {name: each[rows] for name, each in scores.items()},
        labels[rows],
        clusters=clusters[rows],
        llr=True,
    )
    for model, expected in alone.models.items():
        assert_same_scores(result.scores(model, ("kind", "a")), expected, near=0)
    of_kinds = result.groups[0]
    assert [*of_kinds.groups] == ["a", "b"]
    assert "Without targets or without non-targets, by kind: alone." in result.notes
    assert of_kinds.ranked_by == EQUAL_ERROR
    assert of_kinds.table().header[:3] == ["kind", "targets", "non-targets"]


@pytest.mark.parametrize("about_rates", ["ROCCH", "fewer than 30 errors"])
def test_an_equal_error_rate_beside_other_rates_is_explained(about_rates: str) -> None:
    scores, labels = trials(60)
    assert about_rates in str(evaluate_detectors(scores["A"], labels).all_notes())
    # The table of several detectors has no rates.
    assert about_rates not in str(evaluate_detectors(scores, labels).all_notes())
    equal = evaluate_detectors(torch.arange(4.0), torch.arange(4) >= 2)
    assert "ROCCH" not in str(equal.all_notes())


NAMED = {"target": ["spoof", "bonafide"]}
BOTH_NAMES = ["bonafide", "spoof"]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"preds": {}}, Refused("not_empty", "preds")),
        ({"thresholds": "0.5"}, Refused("list_of_thresholds", "thresholds")),
        ({"thresholds": [float("inf")]}, Refused("list_of_thresholds", "thresholds")),
        ({"preds": [0.5, float("nan")]}, Refused("no_nan", "preds")),
        ({"target": [1, 1]}, Refused("both_kinds", "target", missing="non-targets")),
        ({"groups": {"site": ["a"]}}, Refused("name_for_each", "site", 1, rows=2)),
        ({"clusters": ["a", None]}, Refused("named", "clusters", sample=1)),
        ({"max_p_fa": 0.0}, Refused("above_at_most", "max_p_fa")),
        (
            {"llr": "detector"},
            Refused("names_among", "llr", "detector", known=["detector"]),
        ),
        ({"compared": ["b"]}, Refused("names_among", "compared", "b", known=["detector"])),
        (
            {"preds": {1: [0.5, 0.2], "1": [0.5, 0.2]}},
            Refused("different_names", "preds", [1, "1"]),
        ),
        (
            {"points": [(0.5, 1.0, 1.0)]},
            Refused("instance", "points", type="OperatingPoint"),
        ),
        (NAMED, Refused("one_of", "target_label", choices=BOTH_NAMES)),
        (
            {**NAMED, "target_label": "bona"},
            Refused("one_of", "target_label", "bona", choices=BOTH_NAMES),
        ),
        ({"target_label": "1"}, Refused("none_for_numbers", "target_label", "1")),
        (
            {"target": ["spoof", None], "target_label": "spoof"},
            Refused("named", "target", sample=1),
        ),
        ({"unit": ["a", "a"]}, Refused("same_in_unit", "labels")),
        (
            {"unit": ["a", "a"], "combine": "worst"},
            Refused("both_kinds", "target", missing="non-targets"),
        ),
        (
            {"unit": ["a", "b"], "combine": max},
            Refused("combination_of_scores", "combine"),
        ),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        evaluate_detectors(**{"preds": [0.5, 0.2], "target": [1, 0], **given})


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_labels_may_be_names_of_which_one_is_that_of_targets(kind: Any) -> None:
    scores, labels = trials()
    attacks = [
        "bonafide" if is_target else f"A{row % 3}"
        for row, is_target in enumerate(labels.tolist())
    ]
    named = evaluate_detectors(scores, kind(attacks), target_label="bonafide")
    assert repr(named.to_dict()) == repr(evaluate_detectors(scores, labels).to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_trials_of_a_unit_become_one(combine: Any) -> None:
    scores, of_units = trials()
    order = torch.arange(900).flip(0)
    place, unit = order % 3, order // 3  # three trials of each of 300 units
    sites = np.array(["a", "b"] * 150)
    found = evaluate_detectors(
        {name: each[unit] + place - 1.0 for name, each in scores.items()},
        of_units[unit] & ((place == 1) | (combine == "mean")),
        unit=[f"p{number:03}" for number in unit.tolist()],
        combine=combine,
        groups={"site": sites[unit]},
        clusters=unit // 2,
        points=POINTS,
    )
    expected = evaluate_detectors(
        {name: each + (combine == "worst") for name, each in scores.items()},
        of_units,
        groups={"site": sites},
        clusters=torch.arange(300) // 2,
        points=POINTS,
    )
    assert "300 units of decision of 900 rows" in found.notes[0]
    assert found.notes[1:] == expected.notes
    # Influences of areas are binned, and their bins depend on rounding, which differs by machine.
    assert_same_numbers(found, expected, near=1e-3)


DEGENERATE = {
    "perfect": lambda labels: labels.double(),
    "constant": lambda labels: torch.zeros(len(labels), dtype=torch.float64),
    "reversed": lambda labels: -labels.double(),
    "rarely right": lambda labels: (labels & (torch.arange(len(labels)) < 2)).double(),
    "infinite": lambda labels: torch.where(labels, torch.inf, -torch.inf).double(),
}


@pytest.mark.filterwarnings("ignore:the area under the ROC")
@pytest.mark.parametrize(
    "clusters",
    [None, range(400), [0] * 200 + [1] * 200, [0] * 400],
    ids=["rows", "400", "2", "1"],
)
def test_degenerate_scores_are_not_certain(clusters: Any) -> None:
    """Intervals say that rare trials may be missing by chance where no trial, or few, differ from the others."""
    labels = torch.arange(400) % 4 == 0
    scores = {name: of(labels) for name, of in DEGENERATE.items()}
    result = evaluate_detectors(
        scores, labels, llr=True, thresholds=0.5, points=POINTS, clusters=clusters
    )
    assert ("one cluster" in result.notes[0]) == (clusters == [0] * 400)
    for each in result.models.values():
        for name, (low, high) in each.intervals.items():
            assert 0 <= low < high, name
            assert low - 1e-9 <= each.values[name] <= high + 1e-9 or name == EQUAL_ERROR, (
                name
            )
            largest = 5.5 if "cost" in name else 1.0  # 1 + 4.5 at the second point
            assert name == CLLR or high <= largest + 1e-9, name
    for row in result.comparisons:
        assert row.paired.low < row.paired.high


@pytest.mark.parametrize(
    "scores",
    [[4, 3, 2, 1], np.arange(4.0)[::-1], np.broadcast_to(np.arange(4.0)[::-1], (2, 4))[1]],
    ids=["whole numbers", "from the end", "of a larger array"],
)
def test_numbers_and_arrays_in_any_order_are_scores(scores: Any) -> None:
    assert evaluate_detectors(scores, np.array([1, 1, 0, 0])).value(AREA) == 1


@pytest.mark.parametrize("lowest_target", [20, 19])
def test_scores_without_any_error_are_doubted(lowest_target: int) -> None:
    scores = torch.arange(40.0)
    labels = (scores >= lowest_target) & (scores != 20 * (lowest_target == 19))
    remarks = " ".join(evaluate_detectors(scores, labels).all_notes())
    assert ("without any error" in remarks) == (lowest_target == 20)


@pytest.mark.parametrize(
    "scores", [[torch.inf, 3.0, torch.inf], [torch.inf, 1.0, torch.inf]]
)
def test_infinite_scores_of_both_kinds_have_an_interval_of_the_equal_error_rate(
    scores: list[float],
) -> None:
    result = evaluate_detectors(torch.tensor(scores), torch.tensor([1, 0, 1]))
    low, high = result.interval("equal_error_rate") or (1, 0)
    assert 0 <= low <= result.value("equal_error_rate") <= high <= 1


def test_infinite_ratios_leave_no_interval_of_cllr() -> None:
    scores, labels = trials(distance=1.0)
    scores["A"][0] = -torch.inf  # a target that is ruled out
    result = evaluate_detectors(scores, labels, llr=True)
    assert result.find(CLLR, model="A")[:2] == (torch.inf, None)
    assert CLLR not in [row.by.metric for row in result.comparisons]
    [without] = [each for each in result.without if each.by.metric == CLLR]
    assert without.reason.code == "not_finite"


def test_names_are_identifiers_with_titles() -> None:
    scores, labels = trials()
    learned = learned_thresholds(scores["A"], labels, POINTS, p_fa=[0.1])
    fixed = [*given_threshold(0.7, POINTS), *learned]
    plain = evaluate_detectors(
        scores, labels, llr=True, thresholds=fixed, max_p_fa=0.1
    ).to_dict()
    for model in plain["models"].values():
        assert model["metrics"].keys() == model["titles"].keys()
        for name in model["metrics"]:
            assert re.fullmatch(r"[a-z][a-z0-9_]*(\[[a-z0-9_=.,]+\])?", name)
        for row in plain["comparisons"]:
            assert model["titles"].get(row["metric"], row["measure"]) == row["measure"]
