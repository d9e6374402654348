"""Differences between systems, and sentences that say whether the data show them."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import torch

from mpcs_torch.functional.comparison.holm import holm_adjusted


class PairedDifference(NamedTuple):
    """The difference of the value of a second system from that of a first, on the same samples."""

    first: float
    """The value of the first system."""
    second: float
    """The value of the second system."""
    difference: float
    """``second`` minus ``first``; NaN if both are infinite."""
    low: float
    """The lower end of the interval of the difference."""
    high: float
    """The upper end of the interval of the difference."""
    p_value: float
    """In [0, 1], two-sided."""


class Measure(NamedTuple):
    """A metric that systems are compared by."""

    name: str
    """As in a sentence, such as "Cllr" or "equal error rate"."""
    lower_is_better: bool = True
    is_rate: bool = False
    """Whether values are printed in percent."""


class Comparison(NamedTuple):
    """Two systems by one metric."""

    first: str
    """The name of a system."""
    second: str
    """The name of another system."""
    measure: str
    """The name of the metric."""
    paired: PairedDifference
    adjusted_p_value: float
    """In [0, 1]: the p-value after Holm's correction for all comparisons."""
    better: str | None
    """The name of the system that is shown to be better; None if the data do not show which."""
    verdict: str
    """A sentence."""


def with_verdicts(rows: Sequence[tuple[str, str, Measure, PairedDifference]], confidence: float) -> list[Comparison]:
    """Correct the p-values of differences for all of them, and say what each one shows.

    Args:
        rows: Two systems, the metric and their difference.
        confidence: In (0, 1).
    """
    adjusted = holm_adjusted(torch.tensor([row[-1].p_value for row in rows], dtype=torch.float64)).tolist()
    level = 1 - confidence
    return [
        Comparison(
            a,
            b,
            measure.name,
            paired,
            p,
            better_of(a, b, measure, paired, p, level),
            verdict_of(a, b, measure, paired, p, len(rows), level),
        )
        for (a, b, measure, paired), p in zip(rows, adjusted, strict=True)
    ]


def summarize_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    """Say in a sentence for each metric which system is best, as far as the data show it.

    Args:
        comparisons: All of a result, such as that of `mpcs_torch.evaluation.evaluate`.

    Returns:
        The verdict of each metric: of two systems, that of their comparison.

    Example:
        >>> from mpcs_torch.evaluation import evaluate_detectors
        >>> labels = torch.arange(400) % 2 == 0
        >>> noise = torch.arange(400).mul(0.6180339) % 1
        >>> scores = {"A": 0.9 * labels + noise, "B": 0.5 * labels + noise}
        >>> summarize_comparisons(evaluate_detectors(scores, labels).comparisons)[0].split(":")[0]
        'A has a lower equal error rate (interpolated) than B'
    """
    by_measure: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_measure.setdefault(comparison.measure, []).append(comparison)
    return [rows[0].verdict if len(rows) == 1 else _summary(measure, rows) for measure, rows in by_measure.items()]


def _summary(measure: str, rows: Sequence[Comparison]) -> str:
    systems = list(dict.fromkeys(name for row in rows for name in (row.first, row.second)))
    beaten = {row.second if row.better == row.first else row.first for row in rows if row.better is not None}
    best = [name for name in systems if name not in beaten]
    if not beaten:
        return f"By {measure}, the data do not show that any of {_listed(systems)} is better than another."
    worse = [name for name in systems if name in beaten]
    if len(best) == 1:
        lost = [row.second if row.better == row.first else row.first for row in rows if row.better == best[0]]
        rest = [name for name in worse if name not in lost]
        unshown = f"; the data do not show that it is better than {_listed(rest)}" if rest else ""
        return f"By {measure}, {best[0]} is better than {_listed(lost)}{unshown}."
    verb = "are each" if len(worse) > 1 else "is"
    sentence = f"By {measure}, the data do not show which of {_listed(best)} is best"
    return f"{sentence}; {_listed(worse)} {verb} worse than {_listed(best, 'or')}."


def _listed(names: Sequence[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def better_of(
    first: str, second: str, measure: Measure, paired: PairedDifference, p_value: float, level: float
) -> str | None:
    """Return the name of the system that is shown to be better; the arguments are those of `verdict_of`."""
    if not isfinite(paired.difference) or paired.difference == 0 or p_value > level:
        return None
    return second if (paired.difference < 0) == measure.lower_is_better else first


def verdict_of(
    first: str, second: str, measure: Measure, paired: PairedDifference, p_value: float, comparisons: int, level: float
) -> str:
    """Say which system is better by a metric, and by how much, or that the data do not show a difference.

    Args:
        first: The name of the first system.
        second: The name of the second system.
        measure: The metric.
        paired: Their values and the difference.
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

    one, other, difference, low, high, single_p_value = paired
    name = f"{measure.name}," if ", " in measure.name else measure.name  # the second comma of "actual cost, p = 0.5,"
    nothing = f"The data do not show a difference in {name} between {first} and {second}"
    if not isfinite(difference):
        return f"{nothing}: {against(one, other)}."
    if p_value > level or difference == 0:
        corrected = f" after correction for {comparisons} comparisons" if single_p_value <= level else ""
        sentence = f"{nothing}{corrected}: {against(one, other)}"
        return f"{sentence}, {second} minus {first} is {size(difference, low, high)}."
    if difference < 0:
        low, high = -high, -low
    word = "lower" if measure.lower_is_better else "higher"
    if (difference < 0) == measure.lower_is_better:
        first, second, one, other = second, first, other, one
    sentence = f"{first} has a {word} {name} than {second}: {against(one, other)}"
    return f"{sentence}, a difference of {size(abs(difference), low, high)}."
