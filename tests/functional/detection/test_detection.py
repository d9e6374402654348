"""Detection functions against the cases of the oracle, scikit-learn, and laws that hold for any scores."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import astuple
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm
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
from mpcs_torch.functional.detection.errors import count_errors, hull_vertices
from mpcs_torch.functional.detection.llr_cost import bayes_errors_from_counts
from mpcs_torch.metrics import ActualDetectionCost, EqualErrorRate, MinDetectionCost
from tests.conftest import details, load_oracle
from tests.oracles import naive_detection as naive
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


SCALARS: dict[str, Callable[..., Tensor]] = {
    "eer_rocch": equal_error_rate,
    "eer_interpolated": partial(equal_error_rate, method="interpolated"),
    "auc": partial_auc,
    "cllr": cllr,
    "min_cllr": min_cllr,
    "prbep_error_count": precision_recall_break_even,
}
"""Functions by the names of their values in the oracle."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
class TestOracle:
    def test_scalars(self, case: dict[str, Any]) -> None:
        for name, function in SCALARS.items():
            assert function(*scores_of(case)).item() == near(case["expected"][name]), name
        assert h_measure(*scores_of(case)).item() == near(H_MEASURE[case["name"]])

    @pytest.mark.parametrize(
        ("kind", "key"),
        [(MinDetectionCost, "min_dcf"), (ActualDetectionCost, "act_dcf_bayes")],
    )
    def test_costs_at_every_operating_point(
        self, case: dict[str, Any], kind: Any, key: str
    ) -> None:
        for point, row in points_of(case["expected"][key]):
            cost = details(kind(point), *scores_of(case))
            values = {
                "unnormalized": cost.cost.item(),
                "normalized": cost.normalized.item(),
                "p_miss": cost.p_miss.item(),
                "p_fa": cost.p_fa.item(),
                "effective_prior": point.effective_prior,
                "bayes_threshold": point.bayes_threshold,
            }
            for name in values.keys() & row.keys():
                assert values[name] == near(row[name]), name

    def test_a_threshold_learned_on_a_development_set(self, case: dict[str, Any]) -> None:
        for point, row in points_of(case["expected"].get("dev_threshold_dcf", [])):
            learned = details(MinDetectionCost(point), *scores_of(case, "dev_"))
            expected = row["with_midpoint_threshold"]
            assert learned.cost.item() == near(row["dev_min_dcf"])
            threshold = learned.threshold.item()
            assert threshold == near(expected["threshold"])
            actual = ActualDetectionCost(point, threshold=threshold)
            cost = details(actual, *scores_of(case))
            assert cost.cost.item() == near(expected["eval_act_dcf"])
            hter = half_total_error_rate(*scores_of(case), threshold=threshold)
            assert hter.item() == near(expected["eval_hter"])


DRAWN = st.lists(
    st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40
).filter(lambda drawn: len({label for _, label in drawn}) == 2)


def tensors_of(drawn: list[tuple[int, bool]]) -> tuple[Tensor, Tensor]:
    scores, labels = zip(*drawn, strict=True)
    return torch.tensor(scores).float(), torch.tensor(labels)


@given(DRAWN, st.floats(-30, 30))
def test_bayes_errors_equal_the_costs_at_every_prior(
    drawn: list[tuple[int, bool]], log_odds: float
) -> None:
    scores, labels = tensors_of(drawn)
    counts = count_errors(scores.double(), labels)
    errors = bayes_errors_from_counts(counts, torch.tensor([log_odds], dtype=torch.float64))
    point = OperatingPoint(1 / (1 + math.exp(-log_odds)))
    minimum = min_detection_cost(scores, labels, points=point)
    actual = actual_detection_cost(scores, labels, points=point, threshold=-log_odds)
    assert errors.minimum.item() == pytest.approx(minimum.item(), rel=1e-6)
    assert errors.actual.item() == pytest.approx(actual.item(), rel=1e-6)


LIMITS = st.sampled_from([0.05, 0.2, 0.5, 1.0])


@given(DRAWN, LIMITS)
def test_values_are_those_of_their_definitions(
    drawn: list[tuple[int, bool]], limit: float
) -> None:
    scores, labels = tensors_of(drawn)
    trials = scores.tolist(), labels.tolist()
    point = OperatingPoint(0.1, c_miss=3)
    pairs = [
        (equal_error_rate(scores, labels), naive.equal_error_rate(*trials)),
        (min_cllr(scores, labels), naive.min_cllr(*trials)),
        (precision_recall_break_even(scores, labels), naive.break_even(*trials)),
        (
            min_detection_cost(scores, labels, points=point),
            naive.min_cost(*trials, astuple(point)),
        ),
        (
            partial_auc(scores, labels, max_p_fa=limit),
            naive.partial_auc(*trials, limit),
        ),
        (
            miss_at_false_alarm(scores, labels, p_fa=limit),
            naive.miss_at_false_alarm(*trials, limit),
        ),
        (
            false_alarm_at_miss(-scores, ~labels, p_miss=limit),
            naive.miss_at_false_alarm(*trials, limit),
        ),
    ]
    for ours, naively in pairs:
        assert ours.item() == pytest.approx(naively, abs=1e-12)
    curve = detection_curve(scores, labels)
    points = zip(*(values.tolist() for values in curve[:3]), strict=True)
    assert list(points) == [pytest.approx(place) for place in naive.curve(*trials)]


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
        rate, low, high = details(EqualErrorRate(method="nearest"), scores, labels)
        for point, row in points_of(analytic["min_dcf"]):
            prior = point.effective_prior
            one_error = 1 / (size * min(prior, 1 - prior))  # its normalised cost
            minimum = min_detection_cost(scores, labels, points=point).item()
            assert minimum == pytest.approx(row["min_dcf_norm"], abs=one_error)
        values = torch.stack([rate, (low + high) / 2, partial_auc(scores, labels)])
        expected = [analytic[name] for name in ("eer", "eer_threshold", "auc")]
        errors.append((values - torch.tensor(expected)).abs().max())
    assert errors[-1] < 2e-5
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("function", [equal_error_rate, cllr])
def test_reversed_scores_give_a_warning(function: Callable[..., Tensor]) -> None:
    scores = torch.tensor([0.9, 0.1, 0.2, 0.5]).repeat(2)
    labels = torch.tensor([0, 1, 1, 0]).repeat(2)
    with pytest.warns(ReversedScoresWarning, match="area under the ROC is 0, below 1/2"):
        function(scores, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(-scores, labels)
        function(scores[:4], labels[:4])  # as often by chance
        function(torch.zeros(8), labels)  # an area of 1/2


EXACT_POINTS = [
    OperatingPoint(0.5),
    OperatingPoint(0.25),
    OperatingPoint(0.25, c_miss=3.0),
    OperatingPoint(0.75, 2.0),
]
"""Their costs are exact in floating point, and in fractions."""


@given(DRAWN, st.sampled_from(EXACT_POINTS))
@example([(1, False), (2, True), (3, False), (4, True)], EXACT_POINTS[0])  # as wide
@example([(1, False), (2, True), (3, False), (5, True)], EXACT_POINTS[0])  # upper is wider
@example([(1, False), (3, True), (4, False), (5, True)], EXACT_POINTS[0])  # lower is wider
@example([(1, True), (2, False)], EXACT_POINTS[0])  # accepting all is as good as rejecting
@example([(1, True), (1, False)], EXACT_POINTS[0])  # all thresholds are equally good
@example(
    [(1, False), (3, True), (3, False), (3, False)], EXACT_POINTS[1]
)  # bounded against rejecting all
def test_of_thresholds_that_tie_in_cost_the_documented_one_is_taken(
    drawn: list[tuple[int, bool]], point: OperatingPoint
) -> None:
    scores, labels = tensors_of(drawn)
    found = details(MinDetectionCost(point), scores, labels).threshold.item()
    assert found == naive.best_threshold(scores.tolist(), labels.tolist(), astuple(point))


@given(DRAWN)
@example([(2, True), (4, True), (1, False), (2, False)]).via(
    "the rates differ by 1/2 at 2 and at 4"
)
def test_rates_that_differ_least_are_those_of_the_lowest_such_threshold(
    drawn: list[tuple[int, bool]],
) -> None:
    scores, labels = tensors_of(drawn)
    found = details(EqualErrorRate(method="nearest"), scores, labels)
    rate, low, high = naive.nearest_to_equal(scores.tolist(), labels.tolist())
    assert (found.low.item(), found.high.item()) == (low, high)
    assert found.rate.item() == pytest.approx(rate)


def test_cllr_is_precise_for_ratios_beyond_20() -> None:
    scores = torch.tensor([-20.01, -1000.0], dtype=torch.float64)
    nats = 20.01 + math.log1p(math.exp(-20.01))
    expected = nats / 2 / math.log(2)
    assert cllr(scores, torch.tensor([1, 0])).item() == pytest.approx(expected, rel=1e-15)


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


def check_hull(scores: Tensor, labels: Tensor) -> None:
    """Compare the convex hull with that of a monotone chain in exact fractions."""
    counts = count_errors(scores.double(), labels)
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


@given(DRAWN)
def test_the_hull_is_that_of_a_monotone_chain(drawn: list[tuple[int, bool]]) -> None:
    check_hull(*tensors_of(drawn))


@pytest.mark.parametrize("distance", [0.0, 0.5, 3.0])
def test_the_hull_of_many_scores_is_that_of_a_monotone_chain(distance: float) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(50_000, generator=generator) < 0.4
    noise = torch.randn(50_000, generator=generator, dtype=torch.float64)
    check_hull(noise + distance * labels, labels)
