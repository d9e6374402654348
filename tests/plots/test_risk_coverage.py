"""The content of the risk-coverage figure."""

import pytest
import torch

from mpcs_torch.plots import risk_coverage_figure
from mpcs_torch.plots.canvas import BLUE, ORANGE
from tests.refused import Refused

COVERAGE = torch.arange(1, 1001, dtype=torch.float64) / 1000
RISK = (COVERAGE - 0.5).clamp(min=0) / 10


def test_curves_are_drawn_in_percent_and_in_one_order_of_colours() -> None:
    curves = {"first": (COVERAGE, RISK), "second": (COVERAGE, 2 * RISK)}
    figure = risk_coverage_figure(curves)
    (axes,) = figure.axes
    first, second = axes.lines
    assert first.get_xydata()[-1].tolist() == pytest.approx([100, 5])
    assert second.get_xydata()[-1].tolist() == pytest.approx([100, 10])
    assert [line.get_color() for line in (first, second)] == [BLUE, ORANGE]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "first",
        "second",
    ]
    assert axes.get_ylim()[0] == 0
    figure.canvas.draw()


def test_a_single_sample_and_names_with_special_characters_can_be_drawn() -> None:
    one = torch.ones(1)
    risk_coverage_figure({"_a$_^$": (one, one)}).canvas.draw()
    risk_coverage_figure(
        {str(number): (COVERAGE, RISK) for number in range(9)}
    ).canvas.draw()


def test_wrong_arguments_are_refused() -> None:
    with Refused("not_empty", "curves"):
        risk_coverage_figure({})
    with Refused("curve_shapes", "curves", name="a"):
        risk_coverage_figure({"a": (COVERAGE, RISK[1:])})
    with Refused("curve_shapes", "curves"):
        risk_coverage_figure({"a": (COVERAGE[:0], RISK[:0])})
