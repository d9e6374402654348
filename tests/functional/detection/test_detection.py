"""Detection functions against the cases of the oracle, scikit-learn, and laws that hold for any scores."""

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from torch import Tensor

from mpcs_torch.functional import (
    OperatingPoint,
    ReversedScoresWarning,
    actual_detection_cost,
    cllr,
    detection_curve,
    equal_error_rate,
    false_alarm_at_miss,
    h_measure,
    half_total_error_rate,
    min_cllr,
    min_detection_cost,
    miss_at_false_alarm,
    partial_auc,
    precision_recall_break_even,
)
from mpcs_torch.functional.detection.curve import summary_from_counts
from mpcs_torch.functional.detection.errors import (
    ErrorRates,
    checked_scores,
    convex_hull,
    count_errors,
    hull_vertices,
)
from mpcs_torch.functional.detection.llr_cost import bayes_errors_from_counts
from mpcs_torch.metrics import ActualDetectionCost, EqualErrorRate, MinDetectionCost
from tests.conftest import details, load_oracle
from tests.oracles import naive_detection
from tests.refused import Refused

CASES = load_oracle("detection_cases")["cases"]
H_MEASURE = load_oracle("h_measure")["h_measure"]

pytestmark = pytest.mark.filterwarnings(
    "ignore::mpcs_torch.functional.ReversedScoresWarning"
)


def scores_of(case: dict[str, Any], prefix: str = "") -> tuple[Tensor, Tensor]:
    target = [float(score) for score in case[f"{prefix}target"]]
    nontarget = [float(score) for score in case[f"{prefix}nontarget"]]
    labels = [1] * len(target) + [0] * len(nontarget)
    return torch.tensor(target + nontarget, dtype=torch.float64), torch.tensor(labels)


def points_of(
    rows: list[dict[str, Any]],
) -> Iterator[tuple[OperatingPoint, dict[str, Any]]]:
    for row in rows:
        point = OperatingPoint(
            float(row["p_target"]), float(row["c_miss"]), float(row["c_fa"])
        )
        yield point, row


def near(value: Any) -> Any:
    if isinstance(value, dict):
        value = value["value"]
    return pytest.approx(float(value), abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
class TestOracle:
    def test_equal_error_rates(self, case: dict[str, Any]) -> None:
        scores, expected = scores_of(case), case["expected"]
        assert equal_error_rate(*scores).item() == near(expected["eer_rocch"])
        assert equal_error_rate(*scores, method="interpolated").item() == near(
            expected["eer_interpolated"]
        )
        nearest = equal_error_rate(*scores, method="nearest").item()
        assert any(
            nearest == near(value)
            for value in expected["eer_nearest"]["values_at_the_minimisers_of_abs_gap"]
        )

    def test_discrimination_and_calibration(self, case: dict[str, Any]) -> None:
        scores, expected = scores_of(case), case["expected"]
        for function, name in (
            (cllr, "cllr"),
            (min_cllr, "min_cllr"),
            (partial_auc, "auc"),
            (precision_recall_break_even, "prbep_error_count"),
        ):
            assert function(*scores).item() == near(expected[name]), name
        assert h_measure(*scores).item() == near(H_MEASURE[case["name"]])
        partial = expected["pauc_mcclish_max_fpr_0.1"].get("value")
        if isinstance(partial, float):
            assert partial_auc(*scores, max_p_fa=0.1).item() == near(partial)
        if "rocch_vertices" in expected:
            hull, vertices = hull_of(*scores), expected["rocch_vertices"]
            assert hull.p_miss.tolist() == pytest.approx(vertices["pmiss"], abs=1e-9)
            assert hull.p_fa.tolist() == pytest.approx(vertices["pfa"], abs=1e-9)

    def test_minimum_costs_at_every_operating_point(self, case: dict[str, Any]) -> None:
        for point, row in points_of(case["expected"].get("min_dcf", [])):
            cost = details(MinDetectionCost(point), *scores_of(case))
            assert cost.cost.item() == near(row["unnormalized"])
            assert cost.normalized.item() == near(row["normalized"])
            assert point.effective_prior == near(row["effective_prior"])

    def test_actual_costs_at_every_operating_point(self, case: dict[str, Any]) -> None:
        for point, row in points_of(case["expected"].get("act_dcf_bayes", [])):
            cost = details(ActualDetectionCost(point), *scores_of(case))
            assert cost.cost.item() == near(row["unnormalized"])
            assert cost.normalized.item() == near(row["normalized"])
            assert (cost.p_miss.item(), cost.p_fa.item()) == (
                near(row["p_miss"]),
                near(row["p_fa"]),
            )
            assert point.bayes_threshold == near(row["bayes_threshold"])

    def test_the_points_of_the_curve(self, case: dict[str, Any]) -> None:
        if "det_curve" in case["expected"]:
            curve = detection_curve(*scores_of(case))
            expected = case["expected"]["det_curve"]
            ours = dict[float, tuple[float, float]]()
            for place, threshold in enumerate(curve.thresholds.tolist()):
                ours[threshold] = curve.p_fa[place].item(), curve.p_miss[place].item()
            for threshold, p_fa, p_miss in zip(
                expected["thresholds"], expected["fpr"], expected["fnr"], strict=True
            ):
                assert ours[float(threshold)] == (near(p_fa), near(p_miss))

    def test_the_summary_equals_the_single_functions(self, case: dict[str, Any]) -> None:
        scores = scores_of(case)
        rows = list(points_of(case["expected"].get("min_dcf", [])))
        summary = summary_from_counts(
            count_errors(*checked_scores(*scores)), [point for point, _ in rows]
        )
        assert summary.equal_error.rate.item() == near(case["expected"]["eer_rocch"])
        assert summary.area.item() == near(case["expected"]["auc"])
        assert summary.min_cllr.item() == near(min_cllr(*scores).item())
        for cost, (_, row) in zip(summary.min_costs, rows, strict=True):
            assert cost.normalized.item() == near(row["normalized"])

    def test_a_threshold_learned_on_a_development_set(self, case: dict[str, Any]) -> None:
        for point, row in points_of(case["expected"].get("dev_threshold_dcf", [])):
            learned = details(MinDetectionCost(point), *scores_of(case, "dev_"))
            expected = row["with_midpoint_threshold"]
            assert learned.cost.item() == near(row["dev_min_dcf"])
            assert learned.threshold.item() == near(expected["threshold"])
            cost = details(
                ActualDetectionCost(point, threshold=learned.threshold.item()),
                *scores_of(case),
            )
            assert cost.cost.item() == near(expected["eval_act_dcf"])
            assert cost.normalized.item() == near(expected["eval_act_dcf_norm"])
            hter = half_total_error_rate(
                *scores_of(case), threshold=learned.threshold.item()
            )
            assert hter.item() == near(expected["eval_hter"])
        if "hter_at_dev_eer_threshold" in case["expected"]:
            expected = case["expected"]["hter_at_dev_eer_threshold"]
            _, low, high = details(
                EqualErrorRate(method="nearest"), *scores_of(case, "dev_")
            )
            assert ((low + high) / 2).item() == near(expected["threshold"])
            hter = half_total_error_rate(*scores_of(case), threshold=expected["threshold"])
            assert hter.item() == near(expected["hter"])
            learned = details(
                MinDetectionCost(OperatingPoint(0.5)), *scores_of(case, "dev_")
            )
            expected = case["expected"]["hter_at_dev_min_hter_threshold"]
            assert learned.threshold.item() == near(expected["threshold"])
            assert (learned.p_miss.item(), learned.p_fa.item()) == (
                near(expected["dev_pmiss"]),
                near(expected["dev_pfa"]),
            )
            hter = half_total_error_rate(*scores_of(case), threshold=expected["threshold"])
            assert hter.item() == near(expected["hter"])


DRAWN = st.lists(
    st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40
).filter(lambda drawn: len({label for _, label in drawn}) == 2)


def tensors_of(drawn: list[tuple[int, bool]]) -> tuple[Tensor, Tensor]:
    return torch.tensor([float(score) for score, _ in drawn]), torch.tensor(
        [label for _, label in drawn]
    )


def hull_of(scores: Tensor, labels: Tensor) -> ErrorRates:
    return convex_hull(count_errors(scores.double(), labels)).rates()


@given(DRAWN)
def test_mirrored_scores_mirror_the_errors(drawn: list[tuple[int, bool]]) -> None:
    scores, labels = tensors_of(drawn)
    hull, mirrored = hull_of(scores, labels), hull_of(-scores, ~labels)
    assert mirrored.p_miss.flip(0).tolist() == pytest.approx(hull.p_fa.tolist())
    assert mirrored.p_fa.flip(0).tolist() == pytest.approx(hull.p_miss.tolist())
    rate = equal_error_rate(scores, labels).item()
    assert equal_error_rate(-scores, ~labels).item() == pytest.approx(rate)
    assert rate <= 0.5 + 1e-12


@given(DRAWN)
def test_a_rising_transform_does_not_change_discrimination(
    drawn: list[tuple[int, bool]],
) -> None:
    scores, labels = tensors_of(drawn)
    moved = scores.exp() * 1000 - 7
    for function in (min_cllr, partial_auc, precision_recall_break_even):
        assert function(moved, labels).item() == pytest.approx(
            function(scores, labels).item()
        )
    for method in ("rocch", "interpolated", "nearest"):
        rates = [equal_error_rate(s, labels, method=method).item() for s in (scores, moved)]  # type: ignore[arg-type]
        assert rates[0] == pytest.approx(rates[1])
    costs = [
        min_detection_cost(s, labels, points=OperatingPoint(0.1, c_miss=3)).item()
        for s in (scores, moved)
    ]
    assert costs[0] == pytest.approx(costs[1])


@given(DRAWN, st.lists(st.floats(-30, 30), min_size=1, max_size=5))
def test_bayes_errors_equal_the_costs_at_every_prior(
    drawn: list[tuple[int, bool]], log_odds: list[float]
) -> None:
    scores, labels = tensors_of(drawn)
    errors = bayes_errors_from_counts(
        count_errors(scores.double(), labels), torch.tensor(log_odds, dtype=torch.float64)
    )
    for odds, actual, minimum in zip(
        log_odds, errors.actual.tolist(), errors.minimum.tolist(), strict=True
    ):
        point = OperatingPoint(1 / (1 + math.exp(-odds)))
        assert min_detection_cost(scores, labels, points=point).item() == pytest.approx(
            minimum, rel=1e-6
        )
        cost = actual_detection_cost(scores, labels, points=point, threshold=-odds)
        assert cost.item() == pytest.approx(actual, rel=1e-6)


@given(DRAWN)
def test_the_hull_equals_that_of_a_slow_algorithm(drawn: list[tuple[int, bool]]) -> None:
    scores, labels = tensors_of(drawn)
    curve = detection_curve(scores, labels)
    points = sorted(
        set(zip(curve.p_fa.tolist(), curve.p_miss.tolist(), strict=True)),
        key=lambda p: (p[0], -p[1]),
    )
    slow: list[tuple[float, float]] = []
    for x, y in points:
        while (
            len(slow) > 1
            and (slow[-1][0] - slow[-2][0]) * (y - slow[-2][1])
            <= (x - slow[-2][0]) * (slow[-1][1] - slow[-2][1]) + 1e-12
        ):
            slow.pop()
        slow.append((x, y))
    hull = hull_of(scores, labels)
    ours = list(zip(hull.p_fa.flip(0).tolist(), hull.p_miss.flip(0).tolist(), strict=True))
    assert ours == [(pytest.approx(x), pytest.approx(y)) for x, y in slow]


@given(DRAWN)
def test_the_largest_minimum_cost_over_priors_is_the_equal_error_rate(
    drawn: list[tuple[int, bool]],
) -> None:
    scores, labels = tensors_of(drawn)
    rate = equal_error_rate(scores, labels).item()
    hull = hull_of(scores, labels)
    slopes = [
        (b_fa - a_fa) / ((b_fa - a_fa) - (b_miss - a_miss))
        for a_fa, b_fa, a_miss, b_miss in zip(
            hull.p_fa[:-1].tolist(),
            hull.p_fa[1:].tolist(),
            hull.p_miss[:-1].tolist(),
            hull.p_miss[1:].tolist(),
            strict=True,
        )
    ]
    priors = [p for p in slopes if 0 < p < 1] + [0.01, 0.3, 0.5, 0.7, 0.99]
    points = [OperatingPoint(p) for p in priors]
    costs = min_detection_cost(scores, labels, points=points, normalize=False)
    assert costs.max().item() <= rate + 1e-9
    if any(0 < p < 1 for p in slopes):
        assert costs.max().item() == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize(
    "case", [case for case in CASES if "gaussian_analytic" in case["expected"]]
)
def test_gaussian_scores_converge_to_their_analytic_values(case: dict[str, Any]) -> None:
    analytic = case["expected"]["gaussian_analytic"]
    errors = []
    for size in (10**2, 10**3, 10**4, 10**5):
        shares = (np.arange(size) + 0.5) / size
        by_class = [
            norm.ppf(shares, analytic[f"mu{label}"], analytic[f"sd{label}"])
            for label in (1, 0)
        ]
        scores = torch.tensor(np.concatenate(by_class))
        labels = torch.arange(2 * size) < size
        found = details(EqualErrorRate(method="nearest"), scores, labels)
        for point, row in points_of(analytic["min_dcf"]):
            prior = point.effective_prior
            one_error = 1 / (size * min(prior, 1 - prior))  # its normalised cost
            minimum = min_detection_cost(scores, labels, points=point).item()
            assert minimum == pytest.approx(row["min_dcf_norm"], abs=one_error)
        errors.append(
            [
                abs(found.rate.item() - analytic["eer"]),
                abs(((found.low + found.high) / 2).item() - analytic["eer_threshold"]),
                abs(partial_auc(scores, labels).item() - analytic["auc"]),
            ]
        )
    assert max(errors[-1]) < 2e-5
    assert all(max(later) < max(earlier) for earlier, later in itertools.pairwise(errors))


def test_reversed_scores_give_a_warning() -> None:
    scores = torch.tensor([0.9, 0.1, 0.2, 0.5]).repeat(2)
    labels = torch.tensor([0, 1, 1, 0]).repeat(2)
    with pytest.warns(
        ReversedScoresWarning,
        match=r"area under the ROC is 0, below 1/2: scores may be reversed",
    ):
        equal_error_rate(scores, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equal_error_rate(-scores, labels)
        equal_error_rate(scores[:4], labels[:4])  # as often by chance
        equal_error_rate(torch.zeros(8), labels)  # an area of 1/2


@given(DRAWN, st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_areas_equal_those_of_scikit_learn(
    drawn: list[tuple[int, bool]], max_p_fa: float
) -> None:
    scores, labels = tensors_of(drawn)
    theirs = roc_auc_score(labels, scores, max_fpr=None if max_p_fa == 1 else max_p_fa)
    assert partial_auc(scores, labels, max_p_fa=max_p_fa).item() == pytest.approx(theirs)


ANY_SCORE = st.one_of(
    st.sampled_from([-math.inf, math.inf, 1e308, -1e308]), st.floats(allow_nan=False)
)
ANY_DRAWN = st.lists(st.tuples(ANY_SCORE, st.booleans()), min_size=2, max_size=12).filter(
    lambda drawn: len({label for _, label in drawn}) == 2 and (math.inf, False) not in drawn
)


@given(ANY_DRAWN, st.sampled_from([0.01, 0.5, 0.8]))
def test_the_best_threshold_has_the_returned_cost_and_rates(
    drawn: list[tuple[float, bool]], p_target: float
) -> None:
    """Except if a non-target scores infinity, which no threshold rejects."""
    scores = torch.tensor([score for score, _ in drawn], dtype=torch.float64)
    labels = torch.tensor([label for _, label in drawn])
    point = OperatingPoint(p_target)
    minimum = details(MinDetectionCost(point), scores, labels)
    threshold = minimum.threshold.item()
    assert (
        details(ActualDetectionCost(point, threshold=threshold), scores, labels) == minimum
    )


EXACT_POINTS = [
    OperatingPoint(0.5),
    OperatingPoint(0.25),
    OperatingPoint(0.25, c_miss=3.0),
    OperatingPoint(0.75, 2.0),
]
"""Their costs are exact in floating point, and in fractions."""


@given(DRAWN, st.sampled_from(EXACT_POINTS))
@example([(1, False), (2, True), (3, False), (4, True)], EXACT_POINTS[0]).via(
    "two equally wide intervals"
)
@example([(1, False), (2, True), (3, False), (5, True)], EXACT_POINTS[0]).via(
    "the upper of two intervals is wider"
)
@example([(1, False), (3, True), (4, False), (5, True)], EXACT_POINTS[0]).via(
    "the lower of two intervals is wider"
)
@example([(1, True), (2, False)], EXACT_POINTS[0]).via(
    "accepting all is as good as rejecting all"
)
@example([(1, True), (1, False)], EXACT_POINTS[0]).via("all thresholds are equally good")
@example([(1, False), (3, True), (3, False), (3, False)], EXACT_POINTS[1]).via(
    "bounded against rejecting all"
)
def test_of_thresholds_that_tie_in_cost_the_documented_one_is_taken(
    drawn: list[tuple[int, bool]], point: OperatingPoint
) -> None:
    scores, labels = tensors_of(drawn)
    found = details(MinDetectionCost(point), scores, labels).threshold.item()
    assert found == naive_detection.best_threshold(
        scores.tolist(), labels.tolist(), astuple(point)
    )


@given(DRAWN)
@example([(2, True), (4, True), (1, False), (2, False)]).via(
    "the rates differ by 1/2 at 2 and at 4"
)
def test_rates_that_differ_least_are_those_of_the_lowest_such_threshold(
    drawn: list[tuple[int, bool]],
) -> None:
    scores, labels = tensors_of(drawn)
    found = details(EqualErrorRate(method="nearest"), scores, labels)
    rate, low, high = naive_detection.nearest_to_equal(scores.tolist(), labels.tolist())
    assert (found.low.item(), found.high.item()) == (low, high)
    assert found.rate.item() == pytest.approx(rate)


def test_cllr_is_precise_for_ratios_beyond_20() -> None:
    value = cllr(
        torch.tensor([-20.01, -1000.0], dtype=torch.float64), torch.tensor([1, 0])
    ).item()
    assert value == pytest.approx(
        (20.01 + math.log1p(math.exp(-20.01))) / 2 / math.log(2), rel=1e-15
    )
    with pytest.warns(ReversedScoresWarning):
        cllr(torch.tensor([-5.0, 5.0] * 5), torch.tensor([1, 0] * 5))


def test_one_error_rate_at_a_limit_on_the_other() -> None:
    scores, labels = torch.tensor([0.1, 0.4, 0.35, 0.8, 0.7]), torch.tensor([0, 0, 1, 1, 1])
    assert miss_at_false_alarm(scores, labels, p_fa=0.0).item() == pytest.approx(1 / 3)
    assert miss_at_false_alarm(scores, labels, p_fa=0.5) == 0
    assert false_alarm_at_miss(scores, labels, p_miss=0.0) == 0.5
    assert false_alarm_at_miss(scores, labels, p_miss=0.4) == 0


SCORES, LABELS = torch.tensor([0.0, 1.0]), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (
            lambda: detection_curve(torch.tensor([0.0, math.nan]), LABELS),
            Refused("no_nan", "preds", float("nan"), sample=1),
        ),
        (
            lambda: cllr(SCORES, torch.tensor([1, 1])),
            Refused("both_kinds", "target", missing="non-targets"),
        ),
        (
            lambda: cllr(SCORES, torch.tensor([0, 0])),
            Refused("both_kinds", "target", missing="targets"),
        ),
        (
            lambda: cllr(SCORES, torch.tensor([0, 2])),
            Refused("trial_labels", "target", 2, sample=1),
        ),
        (
            lambda: partial_auc(torch.tensor([0, 1]), LABELS),
            Refused("floating", "preds"),
        ),
        (
            lambda: cllr(SCORES, LABELS.float()),
            Refused("trial_shape", "target", shape=(2,)),
        ),
        (
            lambda: min_detection_cost(SCORES, LABELS, points=OperatingPoint(1.0)),
            Refused("open_between", "p_target", 1.0, minimum=0, maximum=1),
        ),
        (
            lambda: min_detection_cost(
                SCORES, LABELS, points=OperatingPoint(0.5, c_fa=0.0)
            ),
            Refused("finite_above", "c_fa", 0.0, minimum=0),
        ),
        (
            lambda: min_detection_cost(
                SCORES, LABELS, points=OperatingPoint(0.5, c_miss=-1.0)
            ),
            Refused("finite_above", "c_miss", -1.0, minimum=0),
        ),
        (
            lambda: half_total_error_rate(SCORES, LABELS, threshold=math.nan),
            Refused("number_or_none", "threshold", float("nan")),
        ),
        (
            lambda: equal_error_rate(SCORES, LABELS, method="best"),
            Refused("one_of", "method"),
        ),  # type: ignore[arg-type]
        (
            lambda: partial_auc(SCORES, LABELS, max_p_fa=0.0),
            Refused("above_at_most", "max_p_fa", 0.0, minimum=0, maximum=1),
        ),
        (
            lambda: miss_at_false_alarm(SCORES, LABELS, p_fa=-0.1),
            Refused("between", "p_fa", -0.1, minimum=0, maximum=1),
        ),
    ],
)
def test_wrong_arguments_are_refused(call: Any, refusal: Refused) -> None:
    with refusal:
        call()


@pytest.mark.parametrize("distance", [0.0, 0.5, 3.0])
def test_the_hull_of_many_scores_is_that_of_a_monotone_chain(distance: float) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(50_000, generator=generator) < 0.4
    scores = (
        torch.randn(50_000, generator=generator, dtype=torch.float64) + distance * labels
    )
    counts = count_errors(scores, labels)
    points = list(zip(counts.false_alarms.tolist(), counts.misses.tolist(), strict=True))

    def share_of_targets(start: int, end: int) -> Fraction:
        (x0, y0), (x1, y1) = points[start], points[end]
        return Fraction(y1 - y0, (y1 - y0) + (x0 - x1))

    hull: list[int] = []
    for place in range(len(points)):
        while len(hull) > 1 and share_of_targets(hull[-1], place) <= share_of_targets(
            hull[-2], hull[-1]
        ):
            hull.pop()
        hull.append(place)
    assert hull_vertices(counts).tolist() == hull
