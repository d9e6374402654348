"""The figures of metrics: for any number of classes, in axes of the caller, and where they cannot be drawn."""

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


def fed(metric: Metric, size: int) -> Metric:
    metric.update(*samples(size))
    return metric


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_CLASSES)
def test_texts_fit_for_any_number_of_classes(kind: str) -> None:
    for size in (2, 10, 30):
        figure, _ = fed(WITH_CLASSES[kind](size), size).plot()
        assert list(text_faults(figure)) == []
        pyplot.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_CLASSES)
def test_texts_fit_between_axes_of_the_caller(kind: str) -> None:
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes in (left, right):
        axes.set(title="title", xlabel="x", ylabel="y")
    fed(WITH_CLASSES[kind](10), 10).plot(ax=middle)
    assert list(text_faults(figure)) == []


def test_the_matrix_of_many_classes_is_an_image_of_shares() -> None:
    figure, axes = fed(metrics.ConfusionMatrix(31), 31).plot()
    assert axes.get_xlabel() == "predicted (dark: most of a row)"
    assert axes.images[0].get_array().sum(axis=1).tolist() == pytest.approx([1.0] * 31)
    assert not axes.texts
    assert list(text_faults(figure)) == []
    pyplot.close(figure)


def test_weights_that_are_not_whole_are_shown_with_three_digits() -> None:
    metric = metrics.ConfusionMatrix(2)
    metric.update(
        torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), torch.tensor([1.23456, 2.0, 0.5])
    )
    axes = Figure().add_subplot()
    metric.plot(ax=axes)
    assert [text.get_text() for text in axes.texts] == ["1.23", "0.5", "0", "2"]
    assert axes.get_title() == "ConfusionMatrix of 3.73456 samples"


@pytest.mark.parametrize(("classes", "name"), [(None, "detector"), (3, "all classes")])
def test_a_single_curve_says_what_it_is_of(classes: int | None, name: str) -> None:
    scores, target = samples(3)
    metric = metrics.EqualErrorRate(classes, average="micro" if classes else "macro")
    metric.update(scores if classes else scores[:, 0], target if classes else target == 0)
    axes = Figure().add_subplot()
    metric.plot(ax=axes)
    labels = [str(line.get_label()) for line in axes.lines]
    assert any(label.startswith(name) for label in labels), labels


def test_the_worst_classes_are_drawn_and_the_title_says_so() -> None:
    scores, target = samples(9)
    scores[:, [2, 5]] = (
        torch.randn(len(target), 2, generator=torch.Generator().manual_seed(3))
        + torch.eye(9)[target][:, [2, 5]]
    )
    metric = metrics.EqualErrorRate(9, average="none")
    metric.update(scores, target)
    figure, axes = metric.plot()
    drawn = [
        int(line.get_label().split()[1][:-1])
        for line in axes.lines
        if str(line.get_label()).startswith("class")
    ]
    assert drawn == metric.compute().argsort(descending=True)[:7].tolist()
    assert "(worst 7 of 9 classes by equal error rate)" in figure.get_suptitle().replace(
        "\n", " "
    )
    pyplot.close(figure)


def marked(axes: Any) -> list[tuple[float, float]]:
    """Return the points that are marked by circles: the false-alarm rate and the miss rate."""
    return [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in axes.lines
        if line.get_marker() == "o" and len(line.get_xdata())
    ]


@pytest.mark.parametrize(
    ("metric", "rates"),
    [
        (metrics.HalfTotalErrorRate(0.35), (0.5, 0.25)),
        (metrics.ActualDetectionCost(POINTS[0], threshold=0.35), (0.5, 0.25)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_rates_of_a_metric_are_marked(
    metric: Metric, rates: tuple[float, float]
) -> None:
    metric.update(
        torch.tensor([0.1, 0.4, 0.3, 0.5, 0.6, 0.7]), torch.tensor([0, 0, 1, 1, 1, 1])
    )
    axes = Figure().add_subplot()
    metric.plot(ax=axes)
    assert marked(axes) == [pytest.approx(rates)]


def test_references_are_the_values_of_such_predictions() -> None:
    probs, target = torch.full((6, 3), 1 / 3, dtype=torch.float64), torch.arange(6) % 3
    kinds = [
        metrics.BrierScore(3, from_logits=False),
        metrics.BrierScore(3, over_classes="mean", from_logits=False),
        metrics.CrossEntropy(3, from_logits=False),
        metrics.Robustness(3, from_logits=False),
    ]
    for metric in kinds:
        guess, perfect = (
            metric(probs, target).item(),
            metric(torch.eye(3).double()[target], target).item(),
        )
        found = metric._references()
        assert list(found.values()) == pytest.approx([perfect, guess], abs=1e-12)


def test_a_scale_says_which_way_is_better() -> None:
    for metric, better in (
        (metrics.BrierScore(3), "lower is better"),
        (metrics.Robustness(3), "higher is better"),
    ):
        axes = Figure().add_subplot()
        fed(metric, 3).plot(ax=axes)
        assert axes.get_xlabel() == better


def test_a_figure_that_cannot_be_drawn_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = fed(metrics.BrierScore(3), 3)
    monkeypatch.setattr(metric, "_references", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        metric.plot()


def test_samples_that_are_all_ignored_have_a_figure_without_bars() -> None:
    metric = metrics.RiskCoverageArea(3, ignore_index=-1)
    metric.update(torch.zeros(2, 3), torch.tensor([-1, -1]))
    figure, _ = metric.plot()
    assert figure.get_suptitle() == "RiskCoverageArea nan"
    pyplot.close(figure)


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
        fed(metrics.Accuracy(3), 3).plot()


def test_the_line_of_recalls_is_the_share_of_right_decisions() -> None:
    metric = metrics.Accuracy(2)
    metric.update(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]))
    figure, axes = metric.plot()
    pyplot.close(figure)
    assert 0.75 in {line.get_ydata()[0] for line in axes.lines}
