"""Every figure: no text is cut off, and none lies over another, for few and many classes and for long names."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from matplotlib.figure import Figure

import mpcs_torch.plots
from mpcs_torch import OperatingPoint
from mpcs_torch.functional import detection_curve, risk_coverage_curve
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.plots import (
    bayes_error_curves,
    confusion_matrix,
    det_curves,
    reliability,
    risk_coverage_figure,
    roc_curves,
    score_histograms,
)
from mpcs_torch.plots.bars import (
    class_bars,
    value_scale,
)
from mpcs_torch.plots.decisions import decision_curve_figure
from mpcs_torch.plots.forest import (
    MonitoredMean,
    Panel,
    result_figure,
    watched_means,
)
from mpcs_torch.plots.samples import samples_figure
from mpcs_torch.plots.trends import METRIC_LINES, figure_4, figure_6, metric_trend
from tests.plots.texts import drawn_texts, text_faults

CLASSES, SYSTEMS, ONE = (2, 3, 10, 30), (1, 7), (1,)
"""Numbers of classes, and of models or detectors in one figure."""
LONG = "An EMERGENCY vehicle that approaches from behind, with its siren on"
GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(400) % 4 == 0
CURVE = detection_curve(
    torch.randn(400, generator=GENERATOR, dtype=torch.float64) + 2 * LABELS, LABELS
)
POINTS = [OperatingPoint(p) for p in (0.5, 0.01, 0.001)]
RECORDS = [
    {
        "epoch": epoch,
        **dict.fromkeys(
            (*METRIC_LINES, "mpcs", "dangerous", "test_accuracy"), 100.0 / epoch**3
        ),
    }
    for epoch in range(1, 30)
]


def names(size: int, *, is_long: bool) -> list[str]:
    return [f"{LONG} {number}" if is_long else f"c{number}" for number in range(size)]


def confusion(size: int, is_long: bool) -> Figure:
    counts = torch.randint(
        0, 20_000 if size < 10 else 900, (size, size), generator=GENERATOR
    )
    released = torch.rand(size, size, generator=GENERATOR) < 0.4
    title = LONG if is_long else "confusion matrix"
    return confusion_matrix(
        counts, released.fill_diagonal_(False), names(size, is_long=is_long), title
    )


def plain_confusion(size: int, is_long: bool) -> Figure:
    return confusion_matrix(
        torch.eye(size, dtype=torch.int64), None, names(size, is_long=is_long), "t"
    )


def reliability_of(size: int, is_long: bool) -> Figure:
    accuracy = ProbabilityAccuracy(num_classes=4)
    accuracy.update(torch.randn(200, 4, generator=GENERATOR), torch.arange(200) % 4)
    return reliability(accuracy.bins(), accuracy.reported(), LONG if is_long else "t")


def trend(size: int, is_long: bool) -> Figure:
    runs = dict.fromkeys(names(size, is_long=is_long), RECORDS)
    return metric_trend(runs, "mpcs", {name: {"mpcs": 29, "accuracy": 3} for name in runs})


def curves(size: int, *, is_long: bool) -> dict[str, ErrorRates]:
    return dict.fromkeys(names(size, is_long=is_long), CURVE)


def conditions(size: int, is_long: bool) -> Figure:
    models, groups = names(3, is_long=is_long), names(size, is_long=is_long)
    values = torch.rand(len(groups), len(models), generator=GENERATOR).tolist()
    column = LONG if is_long else "device"
    rows = {
        group: [(v, v - 0.1, v + 0.1) for v in of_models]
        for group, of_models in zip(groups, values, strict=True)
    }
    panel = Panel("equal error rate", rows, overall=[0.5] * len(models))
    return result_figure([panel], models, subject=column)


def results(size: int, is_long: bool) -> Figure:
    models, panels = names(size, is_long=is_long), list[Panel]()
    for name in names(5, is_long=is_long):
        apart = {}
        if panels:  # the first metric has no differences
            apart = {f"{b} - {a}": (0.1, -0.1, 0.3) for a, b in pairwise(models)}
        panels.append(Panel(name, {"all rows": [(0.5, 0.4, 0.6)] * size}, apart))
    return result_figure(panels, models)


def by_group(size: int, is_long: bool) -> Figure:
    rows = {group: [(0.5, 0.4, 0.6)] * 2 for group in names(size, is_long=is_long)}
    return result_figure(
        [Panel(LONG if is_long else "mpcs", rows, {})], names(2, is_long=is_long)
    )


def referral(size: int, is_long: bool) -> Figure:
    curve = risk_coverage_curve(
        torch.rand(100, generator=GENERATOR), torch.arange(100) % 9 == 0
    )
    systems = names(size, is_long=is_long)
    return risk_coverage_figure(dict.fromkeys(systems, curve))


def bars(size: int, is_long: bool) -> Figure:
    values = torch.rand(size, generator=GENERATOR).tolist()
    return class_bars(values, 0.5, LONG if is_long else "t", ylabel="mean concern")


def watched(size: int, *, is_long: bool) -> list[MonitoredMean]:
    limit = 200.0 if is_long else 0.01
    return [
        MonitoredMean(
            name,
            rate=limit * place / 3,
            low=limit * place / 4,
            high=limit * (place + 1) / 2,
            evidence=1.0,
            lowest=0.0,
            highest=limit,
            samples=100.0,
            scale=1.0,
            is_alarm=place > 3,
        )
        for place, name in enumerate(names(size, is_long=is_long))
    ]


Draw = Callable[[int, bool], Figure]


def decision_curve(size: int, is_long: bool) -> Figure:
    thresholds = [0.05, 0.1, 0.2, 0.4]
    benefits = [(0.1 - at / 9, 0.08 - at / 9, 0.13 - at / 9) for at in thresholds]
    of = LONG if is_long else "a"
    curves = dict.fromkeys(names(size, is_long=is_long), benefits)
    return decision_curve_figure(
        of, thresholds, curves, [0.1 - at for at in thresholds], (0.08, 0.2)
    )


def thumbnails(size: int, is_long: bool) -> Figure:
    names = [f"{place}: {LONG * is_long}a, predicted b" for place in range(size)]
    return samples_figure(
        {name: torch.rand(40, 2) if is_long else torch.rand(1, 8, 8) for name in names}
    )


def gap_scale(size: int, is_long: bool) -> Figure:
    return value_scale(-0.4, {"none": 0.0}, LONG * is_long, xlabel="x")


def score_scale(size: int, is_long: bool) -> Figure:
    return value_scale(0.4, {"guess": 1.5, "none": 0.0}, LONG * is_long, xlabel="x")


def watched_figure(size: int, is_long: bool) -> Figure:
    return watched_means(watched(size, is_long=is_long), LONG * is_long)


def metric_lines(size: int, is_long: bool) -> Figure:
    return figure_4(dict.fromkeys(names(size, is_long=is_long), RECORDS))


def det(size: int, is_long: bool) -> Figure:
    return det_curves(curves(size, is_long=is_long), points=POINTS)


def roc(size: int, is_long: bool) -> Figure:
    return roc_curves(curves(size, is_long=is_long), LONG)


def bayes_errors(size: int, is_long: bool) -> Figure:
    return bayes_error_curves(curves(size, is_long=is_long), LONG)


def histograms(size: int, is_long: bool) -> Figure:
    return score_histograms(CURVE, LONG if is_long else "scores")


FIGURES: dict[Callable[..., Figure], list[tuple[tuple[int, ...], Draw]]] = {
    confusion_matrix: [(CLASSES, confusion), ((3, 200), plain_confusion)],
    class_bars: [((2, 30, 1000), bars)],
    value_scale: [(ONE, score_scale), (ONE, gap_scale)],
    reliability: [(ONE, reliability_of)],
    decision_curve_figure: [(SYSTEMS, decision_curve)],
    samples_figure: [((2, 12), thumbnails)],
    result_figure: [((1, 2, 7), results), ((12, 40), by_group), ((1, 3, 40), conditions)],
    metric_trend: [(SYSTEMS, trend)],
    risk_coverage_figure: [(SYSTEMS, referral)],
    watched_means: [((1, 3, 30), watched_figure)],
    figure_4: [((1, 10), metric_lines)],
    figure_6: [(ONE, lambda *_: figure_6(RECORDS, RECORDS))],
    det_curves: [(SYSTEMS, det)],
    roc_curves: [(SYSTEMS, roc)],
    score_histograms: [(ONE, histograms)],
    bayes_error_curves: [(SYSTEMS, bayes_errors)],
}


def every_figure() -> Iterator[tuple[str, Callable[..., Figure]]]:
    plots = [
        f"mpcs_torch.plots.{module.name}"
        for module in pkgutil.iter_modules(mpcs_torch.plots.__path__)
    ]
    for module in plots:
        loaded = importlib.import_module(module)
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            is_public = (
                function.__module__ == loaded.__name__
                and name[0] != "_"
                and module != "mpcs_torch.plots.canvas"
            )
            if is_public and inspect.signature(function).return_annotation is Figure:
                yield name, function


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", [function for _, function in every_figure()], ids=lambda each: each.__name__
)
def test_texts_fit(function: Callable[..., Figure]) -> None:
    assert function in FIGURES, "draw it here at several sizes"
    faults = [
        f"{size}, {'long' if is_long else 'short'} names: {fault}"
        for sizes, draw in FIGURES[function]
        for size in sizes
        for is_long in (False, True)
        for fault in text_faults(draw(size, is_long))
    ]
    assert faults == []


def detector_of_many_trials() -> Figure:
    is_target = torch.arange(10**6) % 2 == 0
    scores = torch.randn(10**6, generator=GENERATOR) + is_target
    return det_curves({"a detector": detection_curve(scores, is_target)})


@pytest.mark.parametrize(
    "draw",
    [
        detector_of_many_trials,
        lambda: value_scale(0.02, {"no gap": 0.0}, "gap", xlabel="0 is best"),
        lambda: value_scale(-0.0123, {"no gap": 0.0}, "gap", xlabel="0 is best"),
    ],
)
def test_there_is_room_between_the_numbers_of_an_axis(draw: Callable[[], Figure]) -> None:
    figure = draw()
    labels = {label.get_text() for label in figure.axes[0].get_xticklabels()}
    boxes = [box for text, box in drawn_texts(figure) if text in labels]
    lowest = min(box.y0 for box in boxes)
    on_axis = sorted(
        (box.x0, box.x1) for box in boxes if box.y0 < lowest + 1
    )  # not those of the other axis
    assert len(on_axis) > 3
    gaps = [after[0] - before[1] for before, after in pairwise(on_axis)]
    assert min(gaps) > 4, "pixels"


@pytest.mark.parametrize("value", [0.4, -0.4])
def test_a_bar_reaches_from_0_to_the_value_within_the_axis(value: float) -> None:
    [axes] = value_scale(value, {"no gap": 0.0}, "gap", xlabel="0 is best").axes
    [bar] = axes.patches
    low, high = axes.get_xlim()
    ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()))
    assert ends == pytest.approx(sorted((0, value)))
    assert low <= ends[0] < ends[1] <= high


def test_the_check_finds_what_is_cut_off_and_what_overlaps() -> None:
    figure = Figure(figsize=(2, 1))
    for x, text in ((0.2, "one"), (0.25, "two"), (0.9, "far outside")):
        figure.text(x, 0.5, text)
    found = list(text_faults(figure))
    assert found == ["'one' lies over 'two'"] or "is outside" in found[0]
    assert any("far outside" in fault for fault in found)
    assert any("lies over" in fault for fault in found)
