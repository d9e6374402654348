"""The figures of metrics: for any number of classes, in axes of the caller, and where they cannot be drawn."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch import ConcernSpec, OperatingPoint, metrics
from tests.plots.texts import text_faults
from tests.refused import Refused

POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=3.0)]
WITH_CLASSES: dict[str, Any] = {
    "confusion matrix": metrics.ConfusionMatrix,
    "rates of classes": metrics.Accuracy,
    "decisions": lambda size: metrics.DangerousErrors(
        size, concern=ConcernSpec(size, releases=[[0, 1]])
    ),
    "costs": metrics.ExpectedConcern,
    "scores of classes": lambda size: metrics.MetaPatternConcernScore(size, average="none"),
    "scale": metrics.MetaPatternConcernScore,
    "reliability": metrics.ProbabilityAccuracy,
    "DET": lambda size: metrics.ActualDetectionCost(
        POINTS, num_classes=size, average="none"
    ),
    "ROC": lambda size: metrics.PartialAUC(num_classes=size),
    "Bayes errors": metrics.Cllr,
}


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    pyplot.close("all")  # of other files, such as the code of a page
    yield
    assert pyplot.get_fignums() == []


def samples(size: int) -> tuple[Tensor, Tensor]:
    target = torch.arange(20 * size) % size
    noise = torch.randn(len(target), size, generator=torch.Generator().manual_seed(0))
    return 2 * noise + 2.5 * torch.eye(size)[target], target


def updated(metric: Metric, size: int) -> Metric:
    metric.update(*samples(size))
    return metric


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_CLASSES)
def test_texts_fit_for_any_number_of_classes(kind: str) -> None:
    for size in (2, 10, 30):
        figure, _ = updated(WITH_CLASSES[kind](size), size).plot()
        assert list(text_faults(figure)) == []
        pyplot.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_CLASSES)
def test_texts_fit_between_axes_of_the_caller(kind: str) -> None:
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes in (left, right):
        axes.set(title="title", xlabel="x", ylabel="y")
    updated(WITH_CLASSES[kind](10), 10).plot(ax=middle)
    assert list(text_faults(figure)) == []


def drawn(metric: Metric, *batch: Tensor) -> Any:
    """Update the metric with a batch, and return the axes of its figure."""
    metric.update(*batch)
    axes = Figure(layout="constrained").add_subplot()
    metric.plot(ax=axes)
    return axes


def test_the_matrix_of_many_classes_is_an_image_of_shares() -> None:
    figure, axes = updated(metrics.ConfusionMatrix(31), 31).plot()
    pyplot.close(figure)
    assert axes.get_xlabel() == "predicted (dark: most of a row)"
    assert axes.images[0].get_array().sum(axis=1).tolist() == pytest.approx([1.0] * 31)
    assert not axes.texts


def test_weights_that_are_not_whole_are_shown_with_three_digits() -> None:
    weights = torch.tensor([1.23456, 2.0, 0.5])
    target, preds = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 1])
    axes = drawn(metrics.ConfusionMatrix(2), preds, target, weights)
    assert [text.get_text() for text in axes.texts] == ["1.23", "0.5", "0", "2"]
    assert axes.get_title() == "ConfusionMatrix of 3.73456 samples"


@pytest.mark.parametrize(("classes", "name"), [(None, "detector"), (3, "all classes")])
def test_a_single_curve_says_what_it_is_of(classes: int | None, name: str) -> None:
    scores, target = samples(3)
    batch = (scores, target) if classes else (scores[:, 0], target == 0)
    axes = drawn(metrics.EqualErrorRate(classes, average="micro"), *batch)
    labels = [str(line.get_label()) for line in axes.lines]
    assert any(label.startswith(name) for label in labels), labels


def test_the_worst_classes_are_drawn_and_the_title_says_so() -> None:
    scores, target = samples(9)
    random = torch.Generator().manual_seed(3)
    scores[:, [2, 5]] = torch.randn(len(target), 2, generator=random)
    metric = metrics.EqualErrorRate(9, average="none")
    metric.update(scores, target)
    figure, axes = metric.plot()
    pyplot.close(figure)
    labels = " ".join(str(line.get_label()) for line in axes.lines)
    classes = [int(number) for number in re.findall(r"class (\d)", labels)]
    assert classes == metric.compute().argsort(descending=True)[:7].tolist()
    title = figure.get_suptitle().replace("\n", " ")
    assert "(worst 7 of 9 classes by equal error rate)" in title


@pytest.mark.parametrize(
    "metric",
    [
        metrics.HalfTotalErrorRate(0.35),
        metrics.ActualDetectionCost(POINTS[0], threshold=0.35),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_the_false_alarm_and_miss_rate_of_a_metric_are_marked(metric: Metric) -> None:
    scores = torch.tensor([0.1, 0.4, 0.3, 0.5, 0.6, 0.7])
    axes = drawn(metric, scores, torch.tensor([0, 0, 1, 1, 1, 1]))
    marks = [line.get_xydata() for line in axes.lines if line.get_marker() == "o"]
    [marked] = [mark[0].tolist() for mark in marks if len(mark)]
    assert marked == pytest.approx([0.5, 0.25])


@pytest.mark.parametrize(
    ("kind", "settings", "better"),
    [
        (metrics.BrierScore, {}, "lower is better"),
        (metrics.BrierScore, {"over_classes": "mean"}, "lower is better"),
        (metrics.CrossEntropy, {}, "lower is better"),
        (metrics.Robustness, {}, "higher is better"),
    ],
)
def test_a_scale_shows_values_of_perfect_and_uniform_probabilities(
    kind: Any, settings: dict[str, Any], better: str
) -> None:
    probs, target = torch.full((6, 3), 1 / 3, dtype=torch.float64), torch.arange(6) % 3
    metric = kind(3, from_logits=False, **settings)
    certain = torch.eye(3, dtype=torch.float64)[target]
    values = [metric(preds, target).item() for preds in (certain, probs)]
    assert list(metric._references().values()) == pytest.approx(values, abs=1e-12)
    assert drawn(metric, probs, target).get_xlabel() == better


def test_a_figure_that_cannot_be_drawn_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = updated(metrics.BrierScore(3), 3)
    monkeypatch.setattr(metric, "_references", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        metric.plot()


def test_samples_that_are_all_ignored_have_a_figure_without_bars() -> None:
    metric = metrics.RiskCoverageArea(3, ignore_index=-1)
    axes = drawn(metric, torch.zeros(2, 3), torch.tensor([-1, -1]))
    assert axes.get_title() == "RiskCoverageArea nan"


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_a_metric_without_samples_has_no_figure() -> None:
    with Refused("not_updated", "Accuracy.compute"):
        metrics.Accuracy(3).plot()


def test_without_matplotlib_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"plot needs matplotlib: pip install 'mpcs_torch\[plot\]'",
    ):
        updated(metrics.Accuracy(3), 3).plot()


def test_the_line_of_recalls_is_the_share_of_right_decisions() -> None:
    preds, target = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1])
    axes = drawn(metrics.Accuracy(2), preds, target)
    assert 0.75 in {line.get_ydata()[0] for line in axes.lines}
