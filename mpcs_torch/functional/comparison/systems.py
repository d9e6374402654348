"""A table of the differences between systems, each with a verdict."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import torch

from mpcs_torch.functional.comparison.bootstrap import PairedDifference, difference_of, statistics_of, value_of
from mpcs_torch.functional.comparison.holm import holm_adjusted
from mpcs_torch.functional.comparison.mcnemar import mcnemar_test
from mpcs_torch.functional.comparison.measure import Measure
from mpcs_torch.functional.comparison.resamples import Resamples
from mpcs_torch.functional.comparison.verdict import better_of, verdict_of
from mpcs_torch.functional.detection.interval import check_confidence


class Comparison(NamedTuple):
    """Two systems by one metric."""

    first: str
    """The name of a system."""
    second: str
    """The name of another system."""
    measure: str
    """The name of the metric."""
    found: PairedDifference
    adjusted_p_value: float
    """In [0, 1]: the p-value after Holm's correction for all comparisons."""
    better: str | None
    """The name of the system that is shown to be better; None if the data do not show which."""
    verdict: str
    """A sentence."""


def compare_systems(
    systems: Sequence[str],
    measures: Sequence[Measure],
    resamples: Resamples,
    *,
    confidence: float = 0.95,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Comparison]:
    """Compare each pair of systems by each metric, with intervals, p-values and verdicts.

    Intervals and p-values are those of `paired_bootstrap`, from the same resamples for all, except the p-values of
    rates on independent samples, which are those of `mcnemar_test`. A verdict calls a difference shown if its p-value,
    after Holm's correction for all comparisons of the table, is at most 1 - ``confidence``. The probability that any
    difference is called shown without being there is then at most 1 - ``confidence``, as far as the p-values hold.
    Intervals are those of a single comparison. Needs scipy.

    Args:
        systems: The names of two or more systems.
        measures: The metrics, with a statistic for each system.
        resamples: The resamples.
        confidence: In (0, 1).
        advance: Called with the number of resamples that were added, to show progress.

    Returns:
        A comparison for each metric and pair, by metric.

    Raises:
        ValueError: If an argument breaks its rule, or `Resamples` raises it.

    Example:
        >>> from mpcs_torch.functional import rate_measure
        >>> wrong = [torch.arange(200) % 10 == 0, torch.arange(200) % 4 == 0]
        >>> [found] = compare_systems(["A", "B"], [rate_measure("error rate", wrong)], Resamples(200))
        >>> print(found.verdict)
        A has a lower error rate than B: 10 % against 25 %, a difference of 15 points (95 % interval 8.53 to 21.5).
    """
    check_confidence(confidence)
    _check(systems, measures)
    pairs = list(combinations(range(len(systems)), 2))
    drawn = statistics_of([each for measure in measures for each in measure.statistics], resamples, advance)
    by_measure = drawn.view(len(measures), len(systems), -1)
    rows = []
    for measure, of_systems in zip(measures, by_measure, strict=True):
        values = [value_of(statistic, resamples.size) for statistic in measure.statistics]
        for a, b in pairs:
            differences = of_systems[b] - of_systems[a]
            found = difference_of(values[a], values[b], differences, resamples.independent, confidence)
            if measure.wrong is not None and not resamples.is_clustered:
                found = found._replace(p_value=mcnemar_test(measure.wrong[a], measure.wrong[b]).p_value)
            rows.append((systems[a], systems[b], measure, found))
    return with_verdicts(rows, confidence)


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
            found,
            p,
            better_of(a, b, measure, found, p, level),
            verdict_of(a, b, measure, found, p, len(rows), level),
        )
        for (a, b, measure, found), p in zip(rows, adjusted, strict=True)
    ]


def summarize_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    """Say in a sentence for each metric which system is best, as far as the data show it.

    Args:
        comparisons: All that `compare_systems` returned.

    Returns:
        The verdict of each metric: of two systems, that of their comparison.

    Example:
        >>> from mpcs_torch.functional import rate_measure
        >>> wrong = [torch.arange(400) % n == 0 for n in (20, 5, 4)]
        >>> found = compare_systems(["A", "B", "C"], [rate_measure("error rate", wrong)], Resamples(400))
        >>> summarize_comparisons(found)
        ['By error rate, A is better than B and C.']
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
    told = f"By {measure}, the data do not show which of {_listed(best)} is best"
    return f"{told}; {_listed(worse)} {verb} worse than {_listed(best, 'or')}."


def _listed(names: Sequence[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _check(systems: Sequence[str], measures: Sequence[Measure]) -> None:
    if len(systems) < 2 or not measures:
        given = f"{len(systems)} and {len(measures)}"
        raise ValueError(f"systems must be at least 2 and measures at least 1, but got {given}.")
    for measure in measures:
        if len(measure.statistics) != len(systems):
            rule = f"measures must hold a statistic for each of the {len(systems)} systems"
            raise ValueError(f"{rule}, but {measure.name} holds {len(measure.statistics)}.")
