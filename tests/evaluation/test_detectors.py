"""Values of detectors are those of the functions; their intervals and differences those of naive loops."""

import re
import warnings
from math import hypot, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve
from torch import Tensor

from benchmarks import coverage
from mpcs_torch import functional
from mpcs_torch.evaluation import evaluate_detectors
from mpcs_torch.evaluation.fixed_thresholds import (
    FixedThreshold,
    given_threshold,
    learned_thresholds,
    point_key,
)
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.functional import OperatingPoint, clopper_pearson, sign_flip_test
from tests.evaluation.alike import assert_same_numbers
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
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % 3 == 0
    noise = torch.randn(3, size, generator=generator, dtype=torch.float64)
    rise = torch.where(labels, 0.5, -0.5)
    gaps = {"A": distance, "B": distance + 0.3}
    scores = [
        gap * (noise[0] + 0.5 * own + gap * rise)
        for gap, own in zip(gaps.values(), noise[1:], strict=True)
    ]
    return dict(zip(gaps, scores, strict=True)), labels


def test_values_are_those_of_the_functions() -> None:
    scores, labels = trials()
    fixed = given_threshold(0.7, POINTS)
    result = evaluate_detectors(
        scores, labels, points=POINTS, llr=["A"], thresholds=fixed, p_fa=[0.1], max_p_fa=0.1
    )
    for name, each in scores.items():
        p_fa, detected, _ = roc_curve(labels, each, drop_intermediate=False)
        wanted = {
            EQUAL_ERROR: functional.equal_error_rate(each, labels),
            INTERPOLATED: functional.equal_error_rate(each, labels, method="interpolated"),
            AREA: functional.partial_auc(each, labels),
            "auroc[p_fa=0.1]": functional.partial_auc(each, labels, max_p_fa=0.1),
            "miss_rate[p_fa=0.1]": torch.tensor(1 - detected[p_fa <= 0.1].max()),
            "false_alarm_rate[p_miss=0.05]": torch.tensor(p_fa[detected >= 0.95].min()),
            "false_alarm_rate[p_miss=0.01]": torch.tensor(p_fa[detected >= 0.99].min()),
            "h_measure": functional.h_measure(each, labels),
            "precision_recall_break_even": functional.precision_recall_break_even(
                each, labels
            ),
            "min_cllr": functional.min_cllr(each, labels),
            "half_total_error_rate[threshold=0.7]": functional.half_total_error_rate(
                each, labels, threshold=0.7
            ),
        }
        for point in POINTS:
            wanted[f"min_cost[{point_key(point)}]"] = functional.min_detection_cost(
                each, labels, points=point
            )
            wanted[f"cost[threshold=0.7,{point_key(point)}]"] = (
                functional.actual_detection_cost(each, labels, points=point, threshold=0.7)
            )
        if name == "A":
            wanted[CLLR] = functional.cllr(each, labels)
            wanted["calibration_loss"] = wanted[CLLR] - wanted["min_cllr"]
            for point in POINTS:
                cost = functional.actual_detection_cost(each, labels, points=point)
                wanted[f"actual_cost[{point_key(point)}]"] = cost
        assert result.models[name].values == pytest.approx(
            {metric: value.item() for metric, value in wanted.items()}
        )


def test_rates_and_costs_at_thresholds_have_exact_intervals() -> None:
    scores, labels = trials()
    rates: list[Any] = [
        FixedThreshold(name, name, 0.7, name) for name in ("miss rate", "false-alarm rate")
    ]
    fixed = [*given_threshold(0.7, POINTS), *rates]
    found = evaluate_detectors(
        scores["A"], labels, points=POINTS, llr=True, thresholds=fixed
    ).first
    misses = int((scores["A"][labels] < 0.7).sum())
    alarms = int((scores["A"][~labels] >= 0.7).sum())
    exact = clopper_pearson(misses, 100), clopper_pearson(alarms, 200)
    for point in POINTS:
        name = f"cost[threshold=0.7,{point_key(point)}]"
        weights = [weight / min(point.weights) for weight in point.weights]
        expected = naive_detection.cost_interval((misses, 100), (alarms, 200), weights)
        assert found.intervals[name] == pytest.approx(expected)
        assert (found.errors[name].miss_rate, found.errors[name].false_alarm_rate) == tuple(
            map(pytest.approx, exact)
        )
    assert [found.intervals[each.name] for each in rates] == list(map(pytest.approx, exact))
    half = naive_detection.cost_interval((misses, 100), (alarms, 200), (0.5, 0.5))
    assert found.intervals["half_total_error_rate[threshold=0.7]"] == pytest.approx(half)


@pytest.mark.parametrize("distance", [2.0, 3.5])
def test_the_interval_of_the_equal_error_rate_comes_from_shifted_curves(
    distance: float,
) -> None:
    """Each rate is put at an end of its interval at every threshold; the shifted equal error rates are combined."""
    scores, labels = trials(distance=distance)
    targets, others = scores["A"][labels], scores["A"][~labels]
    thresholds = [*scores["A"].sort().values.tolist(), float("inf")]
    counts = [(int((targets < at).sum()), int((others >= at).sum())) for at in thresholds]

    def crossing(end_of_miss: int | None, end_of_alarm: int | None) -> float:
        curve = [
            (
                misses / 100
                if end_of_miss is None
                else clopper_pearson(misses, 100)[end_of_miss],
                alarms / 200
                if end_of_alarm is None
                else clopper_pearson(alarms, 200)[end_of_alarm],
            )
            for misses, alarms in counts
        ]
        after = next(place for place, (miss, alarm) in enumerate(curve) if miss >= alarm)
        (miss, alarm), (before, alarm_before) = curve[after], curve[after - 1]
        share = (alarm_before - before) / (alarm_before - before + miss - alarm)
        return before + share * (miss - before)

    equal = crossing(None, None)
    below, above = (
        hypot(equal - crossing(end, None), equal - crossing(None, end)) for end in (0, 1)
    )
    low, high = max(equal - below, crossing(0, 0)), min(equal + above, crossing(1, 1))
    found = evaluate_detectors(scores["A"], labels).first
    assert found.values[INTERPOLATED] == pytest.approx(equal)
    assert (
        found.intervals[INTERPOLATED]
        == found.intervals[EQUAL_ERROR]
        == pytest.approx((low, high))
    )


def left_out(statistic: Any, labels: Tensor) -> float:
    """Return the standard error of a statistic of places by leaving out one trial, for each kind."""
    variance = 0.0
    for kind in (labels, ~labels):
        values = []
        for place in kind.nonzero().flatten().tolist():
            kept = torch.arange(len(labels)) != place
            values.append(statistic(kept))
        mean = sum(values) / len(values)
        variance += (
            (len(values) - 1) / len(values) * sum((value - mean) ** 2 for value in values)
        )
    return sqrt(variance)


@pytest.mark.slow
def test_areas_and_cllr_are_near_the_jackknife_and_allow_for_a_further_trial() -> None:
    scores, labels = trials(distance=1.2)
    result = evaluate_detectors(scores, labels, llr=True)
    quantile = stats.t.ppf(0.975, 99)
    rows = {row.by.metric: row.paired for row in result.comparisons}
    for name, of in (
        (AREA, lambda s, y: roc_auc_score(y, s)),
        (CLLR, lambda s, y: functional.cllr(s, y).item()),
    ):
        values = [of(scores[model], labels) for model in "AB"]
        half = quantile * left_out(lambda k, of=of: of(scores["A"][k], labels[k]), labels)
        low, high = result.interval(name, model="A")
        assert 2 * half < high - low < 4 * half
        assert low < values[0] - 0.8 * half
        assert high > values[0] + 0.8 * half
        spread = left_out(
            lambda k, of=of: of(scores["B"][k], labels[k]) - of(scores["A"][k], labels[k]),
            labels,
        )
        change = values[1] - values[0]
        assert (rows[name].first, rows[name].second) == pytest.approx(values)
        assert (rows[name].low, rows[name].high) == pytest.approx(
            (change - quantile * spread, change + quantile * spread), abs=1.5 * spread
        )
        assert rows[name].p_value == pytest.approx(
            2 * stats.t.sf(abs(change) / spread, 99), rel=0.4
        )


def test_wrong_decisions_of_independent_trials_are_tested_by_flips_of_errors() -> None:
    scores, labels = trials()
    result = evaluate_detectors(
        scores, labels, points=POINTS[:1], thresholds=given_threshold(0.0, POINTS[:1])
    )
    [row] = [
        row
        for row in result.comparisons
        if row.measure.startswith("rate of wrong decisions")
    ]
    wrong = [(each >= 0) != labels for each in scores.values()]
    assert row.paired.p_value == pytest.approx(
        sign_flip_test(wrong[0].double() - wrong[1].double())
    )
    assert (row.paired.first, row.paired.second) == tuple(
        each.double().mean().item() for each in wrong
    )


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


def test_a_number_is_a_threshold_for_all_or_one_detector() -> None:
    scores, labels = trials()
    first = next(iter(scores))
    given = evaluate_detectors(
        scores, labels, points=POINTS, thresholds=given_threshold(0.7, POINTS)
    )
    for thresholds in (0.7, [0.7], dict.fromkeys(scores, 0.7)):
        result = evaluate_detectors(scores, labels, points=POINTS, thresholds=thresholds)
        assert result.models[first].values == given.models[first].values
        assert result.models[first].intervals == given.models[first].intervals


@settings(max_examples=15)
@given(st.data())
def test_an_interval_of_a_difference_that_contradicts_its_p_value_is_said_to(
    data: st.DataObject,
) -> None:
    size = data.draw(st.integers(4, 60))
    rows = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    scores = {name: torch.tensor(data.draw(rows), dtype=torch.float64) for name in "AB"}
    labels = torch.arange(size) % 2 == 0
    scores = {name: each + labels for name, each in scores.items()}
    clusters = data.draw(st.sampled_from([None, torch.arange(size) // 3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", functional.ReversedScoresWarning)
        result = evaluate_detectors(
            scores,
            labels,
            llr=True,
            thresholds=given_threshold(0.0, POINTS),
            clusters=clusters,
            points=POINTS,
        )
    for row in result.comparisons:
        assert row.paired.low <= row.paired.difference <= row.paired.high
        if (row.adjusted_p_value <= 0.05) != (row.paired.low > 0 or row.paired.high < 0):
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
    draw = coverage.trials(6.2, 0.1)
    sample = draw(10_000, torch.Generator().manual_seed(seed))
    result = evaluate_detectors(sample.preds, sample.target)
    [row] = [
        row
        for row in result.comparisons
        if row.by.metric == "equal_error_rate_interpolated"
    ]
    assert row.paired.low <= 0 <= row.paired.high or row.paired.p_value <= 0.05
    assert not row.paired.low <= 0 <= row.paired.high or row.paired.p_value >= 0.05 - 1e-9


def test_repeated_trials_of_a_cluster_say_no_more_than_one() -> None:
    scores, labels = trials(90)
    options: Any = {
        "points": POINTS,
        "llr": True,
        "thresholds": given_threshold(0.7, POINTS),
    }
    once = evaluate_detectors(scores, labels, clusters=range(90), **options)
    often = evaluate_detectors(
        {name: each.repeat(4) for name, each in scores.items()},
        labels.repeat(4),
        clusters=list(range(90)) * 4,
        **options,
    )
    errors = "precision_recall_break_even"  # a number of errors
    assert_same_numbers(once, often, skipped=[errors])
    assert often.value(errors, "A") == pytest.approx(4 * once.value(errors, "A"))
    alone = evaluate_detectors(scores, labels, **options)
    for name in ("half_total_error_rate[threshold=0.7]", EQUAL_ERROR):
        low, high = alone.models["A"].intervals[name]
        assert once.interval(name, model="A") == pytest.approx(
            (low, high), abs=0.2 * (high - low)
        )


def test_minima_have_no_interval_and_say_why() -> None:
    scores, labels = trials()
    found = evaluate_detectors(scores["A"], labels, llr=True, points=POINTS).first
    chosen = {
        name
        for name, why in found.without_interval.items()
        if "the best on these trials" in why.text
    }
    minima = {
        *(f"min_cost[{point_key(point)}]" for point in POINTS),
        "min_cllr",
        "calibration_loss",
    }
    assert chosen == minima | {f"false_alarm_rate[p_miss={rate}]" for rate in (0.01, 0.05)}
    bare = evaluate_detectors(scores, labels, intervals=False)
    assert not bare.models["A"].intervals
    assert not bare.models["A"].without_interval
    assert not bare.comparisons


def test_groups_have_values_and_intervals_of_their_own() -> None:
    scores, labels = trials()
    kind, clusters = ["ab"[row % 2] for row in range(299)], torch.arange(300) // 3
    groups = {"kind": [*kind, "alone"]}
    result = evaluate_detectors(scores, labels, groups=groups, clusters=clusters, llr=True)
    rows = torch.arange(0, 299, 2)
    alone = evaluate_detectors(
        {name: each[rows] for name, each in scores.items()},
        labels[rows],
        clusters=clusters[rows],
        llr=True,
    )
    for model in "AB":
        group = result.scores(model, ("kind", "a"))
        assert group.values == alone.models[model].values
        assert group.intervals == alone.models[model].intervals
    assert list(result.groups[0].groups) == ["a", "b"]
    assert "Without targets or without non-targets, by kind: alone." in result.notes
    assert result.groups[0].ranked_by == EQUAL_ERROR
    assert result.groups[0].table().header[:3] == ["kind", "targets", "non-targets"]


def test_an_equal_error_rate_beside_other_rates_is_explained() -> None:
    scores, labels = trials(60)
    alone = evaluate_detectors(scores["A"], labels)
    # The table of several detectors has no rates.
    for about_rates in ("ROCCH", "fewer than 30 errors"):
        assert [note for note in alone.all_notes() if about_rates in note]
        assert not [
            note
            for note in evaluate_detectors(scores, labels).all_notes()
            if about_rates in note
        ]
    equal = evaluate_detectors(torch.arange(4.0), torch.arange(4) >= 2)
    assert not [note for note in equal.all_notes() if "ROCCH" in note]


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


def test_labels_may_be_names_of_which_one_is_that_of_targets() -> None:
    scores, labels = trials()
    attacks = [
        "bonafide" if is_target else f"A{row % 3}"
        for row, is_target in enumerate(labels.tolist())
    ]
    expected = evaluate_detectors(scores, labels)
    for target in (attacks, np.array(attacks), pd.Series(attacks)):
        named = evaluate_detectors(scores, target, target_label="bonafide")
        assert named.first.values == expected.first.values
        assert named.comparisons == expected.comparisons


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_trials_of_a_unit_become_one(combine: Any) -> None:
    scores, of_units = trials()
    order = torch.arange(900).flip(0)
    place, unit = order % 3, order // 3  # three trials of each of 300 units
    labels = of_units[unit] & ((place == 1) | (combine == "mean"))
    sites = ["ab"[number % 2] for number in range(300)]
    found = evaluate_detectors(
        {name: each[unit] + place - 1.0 for name, each in scores.items()},
        labels,
        unit=[f"p{number:03}" for number in unit.tolist()],
        combine=combine,
        groups={"site": [sites[number] for number in unit.tolist()]},
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
    fixed = given_threshold(0.5, POINTS)
    result = evaluate_detectors(
        scores, labels, llr=True, thresholds=fixed, points=POINTS, clusters=clusters
    )
    assert ("one cluster" in result.notes[0]) == (clusters == [0] * 400)
    for each in result.models.values():
        for name, (low, high) in each.intervals.items():
            assert low < high, name
            assert low - 1e-9 <= each.values[name] <= high + 1e-9 or name == EQUAL_ERROR, (
                name
            )
            assert low >= 0
            most = 1.0
            if name == CLLR:
                most = torch.inf
            elif "cost" in name:
                most = 5.5  # 1 + 4.5 at the second point
            assert high <= most + 1e-9, name
    for row in result.comparisons:
        assert row.paired.low < row.paired.high


def test_whole_numbers_are_scores_too() -> None:
    assert evaluate_detectors([1, 2, 3, 4], [0, 0, 1, 1]).value(AREA) == 1


def test_arrays_in_any_order_are_scores() -> None:
    scores, labels = np.arange(4.0), np.array([1, 1, 0, 0])
    for array in (scores[::-1], np.broadcast_to(scores[::-1], (2, 4))[1]):
        assert evaluate_detectors(array, labels).value(AREA) == 1


@pytest.mark.parametrize("separated", [True, False])
def test_scores_without_any_error_are_doubted(separated: bool) -> None:
    labels = torch.arange(40) >= 20
    scores = torch.arange(40.0)
    if not separated:
        scores[[0, 39]] = scores[[39, 0]]
    remarks = " ".join(evaluate_detectors(scores, labels).all_notes())
    assert ("without any error" in remarks) == separated


def test_reversed_scores_give_a_warning() -> None:
    with pytest.warns(functional.ReversedScoresWarning, match="below 1/2"):
        evaluate_detectors(
            torch.tensor([0.1, 0.9]).repeat(5), torch.tensor([1, 0]).repeat(5)
        )


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
    assert result.value(CLLR, model="A") == torch.inf
    assert result.interval(CLLR, model="A") is None
    assert CLLR not in [row.by.metric for row in result.comparisons]
    assert {each.reason.code for each in result.without if each.by.metric == CLLR} == {
        "not_finite"
    }


def test_names_are_identifiers_with_titles() -> None:
    scores, labels = trials()
    learned = learned_thresholds(scores["A"], labels, POINTS, p_fa=[0.1])
    fixed = [*given_threshold(0.7, POINTS), *learned]
    result = evaluate_detectors(scores, labels, llr=True, thresholds=fixed, max_p_fa=0.1)
    plain = result.to_dict()
    for model in plain["models"].values():
        assert model["metrics"].keys() == model["titles"].keys()
        for name in model["metrics"]:
            assert re.fullmatch(r"[a-z][a-z0-9_]*(\[[a-z0-9_=.,]+\])?", name)
    titles = plain["models"]["A"]["titles"]
    for row in plain["comparisons"]:
        assert titles.get(row["metric"], row["measure"]) == row["measure"]
