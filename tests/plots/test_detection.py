"""The content of the detection figures."""

import math

import pytest
import torch
from matplotlib.figure import Figure

from mpcs_torch import OperatingPoint
from mpcs_torch.functional import clopper_pearson, detection_curve, equal_error_rate
from mpcs_torch.metrics import MinDetectionCost
from mpcs_torch.plots import bayes_error_curves, det_curves, roc_curves, score_histograms
from mpcs_torch.plots.detection import thinned
from tests.conftest import details
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(3000) < 1000
SCORES = torch.randn(3000, generator=GENERATOR, dtype=torch.float64) * 2 + 4 * LABELS - 2
POINTS = [OperatingPoint(0.5), OperatingPoint(0.2)]


def labels_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_det_marks_the_minimum_costs_within_their_intervals() -> None:
    rates = detection_curve(SCORES, LABELS)
    assert len(det_curves({"one": rates}, points=POINTS[0]).axes[0].patches) == 1
    figure = det_curves(
        {"one": rates, "two": detection_curve(SCORES + LABELS.double(), LABELS)},
        points=POINTS,
    )
    (axes,) = figure.axes
    assert len(axes.patches) == len(POINTS) * 2
    assert not det_curves({"one": rates}, points=POINTS, confidence=None).axes[0].patches
    cost = details(MinDetectionCost(OperatingPoint(0.5)), SCORES, LABELS)
    left, right = clopper_pearson(round(cost.p_fa.item() * 2000), 2000)
    bottom, top = clopper_pearson(round(cost.p_miss.item() * 1000), 1000)
    box = axes.patches[0].get_bbox()
    assert (box.x0, box.x1, box.y0, box.y1) == pytest.approx((left, right, bottom, top))
    rate = equal_error_rate(SCORES, LABELS).item()
    assert labels_of(figure)[0] == f"one, equal error rate {100 * rate:.2f} %"
    thirty = [
        line.get_xdata()[0]
        for line in axes.lines
        if line.get_linestyle() == ":" and len(line.get_xdata())
    ]
    assert thirty[0] == 30 / 2000
    figure.canvas.draw()


def test_on_probit_axes_gaussian_scores_lie_on_a_line() -> None:
    """The slope is -sd0 / sd1, the ratio of the standard deviations."""
    shares = (torch.arange(20_000) + 0.5) / 20_000
    normal = torch.distributions.Normal(0.0, 1.0).icdf(shares).double()
    scores, labels = torch.cat([2 * normal + 3, normal]), torch.arange(40_000) < 20_000
    figure = det_curves({"one": detection_curve(scores, labels)})
    axes = figure.axes[0]
    line = next(line for line in axes.lines if str(line.get_label()).startswith("one"))
    inside = [
        (x, y) for x, y in line.get_xydata().tolist() if 0.01 < x < 0.5 and 0.01 < y < 0.5
    ]
    x, y = axes.transScale.transform(inside).T
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    assert slope == pytest.approx(-0.5, abs=0.01)
    assert y == pytest.approx(y[0] + slope * (x - x[0]), abs=0.02)


def test_perfect_and_tiny_sets_can_be_drawn() -> None:
    for scores, labels in (
        (torch.tensor([0.0, 1.0]), torch.tensor([0, 1])),
        (torch.zeros(4), torch.arange(4) % 2),
    ):
        det_curves({"one": detection_curve(scores, labels)}, points=POINTS).canvas.draw()
        roc_curves({"one": detection_curve(scores, labels)}, "one").canvas.draw()
        bayes_error_curves({"one": detection_curve(scores, labels)}, "one").canvas.draw()
        score_histograms(detection_curve(scores, labels), "one").canvas.draw()


def test_roc_shows_both_areas() -> None:
    figure = roc_curves(
        {
            "one": detection_curve(
                torch.tensor([1.0, 3.0, 2.0, 4.0]), torch.tensor([0, 0, 1, 1])
            )
        },
        "one",
    )
    assert labels_of(figure) == [
        "ROC, area 0.7500",
        "convex hull, area 0.8750",
        "equal error rate 25.00 %",
    ]


def test_bayes_error_curves_draw_the_loss_of_calibration() -> None:
    figure = bayes_error_curves({"shifted": detection_curve(SCORES + 3, LABELS)}, "shifted")
    of_actual, of_minimum, *_ = figure.axes[0].lines
    actual, minimum = of_actual.get_ydata(), of_minimum.get_ydata()
    assert all(a >= b - 1e-12 for a, b in zip(actual, minimum, strict=True))
    assert max(actual) > 1 >= max(minimum)
    assert figure.axes[0].get_ylim()[1] == pytest.approx(min(5, 1.05 * max(actual)))


def test_histograms_are_densities_and_take_infinite_scores() -> None:
    scores = torch.cat([SCORES, torch.tensor([math.inf, -math.inf])])
    figure = score_histograms(
        detection_curve(scores, torch.cat([LABELS, torch.tensor([True, False])])), "one"
    )
    (axes,) = figure.axes
    for stairs in axes.patches:
        values, edges, _ = stairs.get_data()
        assert (values * (edges[1:] - edges[:-1])).sum() == pytest.approx(1)
    assert labels_of(figure)[:2] == ["2001 non-targets", "1001 targets"]
    figure.canvas.draw()


def test_a_line_of_many_points_is_thinned_without_moving() -> None:
    x = torch.linspace(0, 1, 10**6, dtype=torch.float64)
    kept_x, kept_y = thinned(x, x * x)
    assert len(kept_x) < 10_000
    assert (kept_x[0], kept_x[-1]) == (0, 1)
    assert all(b == a * a for a, b in zip(kept_x, kept_y, strict=True))
    steps = torch.tensor(
        [[0.0, 0.0, 0.5, 0.5, 0.5, 0.5], [0.0, 0.75, 0.75, 0.75, 0.75, 1.0]]
    )
    assert thinned(*steps) == tuple(steps[:, [0, 1, 2, 4, 5]].tolist()), (
        "the first and the last point of each place"
    )


def test_special_characters_in_names_are_shown() -> None:
    rates = detection_curve(SCORES, LABELS)
    figure = det_curves({"_a$_^$": rates, "b": rates})
    assert [label.split(",")[0] for label in labels_of(figure)[:2]] == [r" _a\$_^\$", "b"]
    figure.canvas.draw()
    roc_curves({"x": rates}, "$x_^$").canvas.draw()
    score_histograms(rates, "$x_^$").canvas.draw()
    bayes_error_curves({"$x_^$": rates}, "$x_^$").canvas.draw()


def test_histograms_cover_all_finite_floats() -> None:
    scores = torch.tensor([-1.7e308, -1e299, 1e299, 1.7e308], dtype=torch.float64)
    figure = score_histograms(
        detection_curve(scores, torch.tensor([0, 0, 1, 1])), "far apart"
    )
    assert [
        int(stairs.get_data().values.argmax()) for stairs in figure.axes[0].patches
    ] == [0, 99]
    figure.canvas.draw()


def test_wrong_arguments_are_refused() -> None:
    with Refused("not_empty", "systems"):
        det_curves({})
    with Refused("open_between", "confidence", 95, minimum=0, maximum=1):
        det_curves({"one": detection_curve(SCORES, LABELS)}, confidence=95)
    with Refused("instance", "points", (0.5, 1, 1), type="OperatingPoint"):
        det_curves({"one": detection_curve(SCORES, LABELS)}, points=[(0.5, 1, 1)])  # type: ignore[list-item]
