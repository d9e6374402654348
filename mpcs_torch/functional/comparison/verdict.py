"""Sentences that say whether the data show a difference between two systems."""

from math import isfinite

from mpcs_torch.functional.comparison.bootstrap import PairedDifference
from mpcs_torch.functional.comparison.measure import Measure


def better_of(
    first: str, second: str, measure: Measure, found: PairedDifference, p_value: float, level: float
) -> str | None:
    """Return the name of the system that is shown to be better; the arguments are those of `verdict_of`."""
    if not isfinite(found.difference) or found.difference == 0 or p_value > level:
        return None
    return second if (found.difference < 0) == measure.lower_is_better else first


def verdict_of(
    first: str, second: str, measure: Measure, found: PairedDifference, p_value: float, comparisons: int, level: float
) -> str:
    """Say which system is better by a metric, and by how much, or that the data do not show a difference.

    Args:
        first: The name of the first system.
        second: The name of the second system.
        measure: The metric.
        found: Their values and the difference.
        p_value: The adjusted p-value, which decides.
        comparisons: The number of comparisons that the p-value is adjusted for.
        level: The highest p-value that shows a difference; the interval has confidence 1 - level.
    """
    scale, percent, points = (100, " %", " points") if measure.is_rate else (1, "", "")

    def number(value: float) -> str:
        return f"{scale * value + 0.0:.3g}"  # never "-0"

    def against(one: float, other: float) -> str:
        return f"{number(one)}{percent} against {number(other)}{percent}"

    def size(difference: float, low: float, high: float) -> str:
        interval = f" ({100 * (1 - level):.4g} % interval {number(low)} to {number(high)})"
        return f"{number(difference)}{points}{interval if low < high else ''}"  # none where all resamples agree

    one, other, difference, low, high, single_p_value = found
    name = f"{measure.name}," if ", " in measure.name else measure.name  # the second comma of "actual cost, p = 0.5,"
    nothing = f"The data do not show a difference in {name} between {first} and {second}"
    if not isfinite(difference):
        return f"{nothing}: {against(one, other)}."
    if p_value > level or difference == 0:
        corrected = f" after correction for {comparisons} comparisons" if single_p_value <= level else ""
        told = f"{nothing}{corrected}: {against(one, other)}"
        return f"{told}, {second} minus {first} is {size(difference, low, high)}."
    if difference < 0:
        low, high = -high, -low
    word = "lower" if measure.lower_is_better else "higher"
    if (difference < 0) == measure.lower_is_better:
        first, second, one, other = second, first, other, one
    told = f"{first} has a {word} {name} than {second}: {against(one, other)}"
    return f"{told}, a difference of {size(abs(difference), low, high)}."
