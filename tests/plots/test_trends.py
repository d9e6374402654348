"""Metrics over epochs: every mark is visible, and the scale suits the values."""

import pytest

from mpcs_torch.plots.trends import metric_trend


def test_a_mark_is_visible_where_another_metric_picks_the_same_epoch() -> None:
    records = [{"epoch": epoch, "mpcs": 1 / epoch} for epoch in (1, 2, 3)]
    axes = metric_trend(
        {"run": records}, "mpcs", {"run": {"picked": 3, "by accuracy": 3}}
    ).axes[0]
    [ring] = [line for line in axes.lines if str(line.get_label()).startswith("picked")]
    [dot] = [line for line in axes.lines if str(line.get_label()).startswith("by accuracy")]
    assert ring.get_fillstyle() == "none"
    assert not ring.get_clip_on(), "whole at the edge of the axes"
    assert ring.get_markersize() - 2 * ring.get_markeredgewidth() > dot.get_markersize()
    runs = metric_trend(
        dict.fromkeys("AB", records), "mpcs", {"A": {"picked": 3}, "B": {"picked": 3}}
    ).axes[0]
    sizes = [
        line.get_markersize() for line in runs.lines if "picked" in str(line.get_label())
    ]
    assert sizes[1] > sizes[0] + 2


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([3.0, 0.5, 0.1, 0.09], "log"),  # a loss
        ([0.02, 0.9, 0.95, 0.96], "linear"),  # a rate that is soon near 1
        ([3.0, 2.0, 1.0, 0.0], "linear"),
    ],
)
def test_a_logarithmic_scale_is_for_values_that_become_small(
    values: list[float], scale: str
) -> None:
    records = [{"epoch": epoch, "metric": value} for epoch, value in enumerate(values)]
    assert metric_trend({"run": records}, "metric", {}).axes[0].get_yscale() == scale


def test_a_flat_line_is_zoomed_to_its_later_and_its_marked_epochs() -> None:
    values = [0.1, 0.6, 0.93, 0.95, 0.94, 0.97, 0.96, 0.98]
    records = [{"epoch": epoch, "metric": value} for epoch, value in enumerate(values)]
    low, high = (
        metric_trend({"run": records}, "metric", {"run": {"picked": 2}}).axes[0].get_ylim()
    )
    assert 0.9 < low < 0.93 < 0.98 < high < 1
    low, _ = (
        metric_trend({"run": records}, "metric", {"run": {"picked": 0}}).axes[0].get_ylim()
    )
    assert low < 0.1, "a marked epoch is always inside"


def test_seeds_of_a_setting_share_a_colour_and_a_label() -> None:
    records = [{"epoch": epoch, "mpcs": 1 / epoch} for epoch in (1, 2, 3)]
    settings = {"a-1": "a", "a-2": "a", "b": "b"}
    marked = {name: {"picked": 3} for name in settings}
    figure = metric_trend(dict.fromkeys(settings, records), "mpcs", marked, settings)
    first, second, other = [line.get_color() for line in figure.axes[0].lines[::2]]
    assert first == second != other
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "a",
        "b",
        "picked: epoch of each seed, a",
        "picked: epoch 3, b",
    }
    assert len(legend.get_texts()) == 4, "each label once"


def test_a_single_epoch_is_a_dot_at_a_whole_number() -> None:
    figure = metric_trend({"run": [{"epoch": 0, "mpcs": 0.3}]}, "mpcs", {})
    figure.canvas.draw()
    [axes] = figure.axes
    assert axes.lines[0].get_marker() == "."
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [0]
