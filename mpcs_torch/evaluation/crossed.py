"""Intervals of rows that share two things, such as cases that were all read by the same readers.

By patients alone, intervals would not allow for other readers, and by readers alone not for other patients. With both,
the variance is that by patients, plus that by readers, less that by pairs of both (Cameron, Gelbach and Miller: Robust
inference with multiway clustering, Journal of Business and Economic Statistics 29, 2011). So the distances from a value
to the ends of its intervals are added and subtracted as squares, and the larger one of both alone is the least.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, sqrt
from typing import Any, cast

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.intervals import quantile
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.scores import GroupScores, Scores
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.comparison.significance import Measure, with_verdicts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.groups import row_names

Classified = Result[ClassifierScores]
Ends = Mapping[str, Interval]


def crossed_rows(clusters: Mapping[str, Any]) -> list[list[Any]]:
    """Return the names of the clusters of rows by the one column, by the other, and by both, (N,) each.

    Raises:
        ValueError: If there are not two columns with names for the same rows.
    """
    if len(clusters) != 2:
        raise ValueError(f"clusters must be (N,) names, or two columns of them, but got columns {quoted([*clusters])}.")
    columns = [row_names(f"clusters[{name!r}]", rows, len(rows)) for name, rows in clusters.items()]
    return [*columns, list(zip(*columns, strict=True))]


def crossed(ways: Iterable[Classified], columns: Iterable[str | None]) -> Classified:
    """Return a result with the intervals and comparisons of crossed clusters, from those by each column and by both."""
    first, second, both = ways
    names = " and ".join(map(str, columns))
    models = {name: _crossed(*(each.models[name] for each in (first, second, both))) for name in first.models}
    groups = [
        GroupScores(
            of.model,
            of.column,
            models[of.model],
            {name: _crossed(*(each.groups[name] for each in (of, *others))) for name in of.groups},
        )
        for of, *others in zip(first.groups, second.groups, both.groups, strict=True)
    ]
    note = f"{CONFIDENCE_TEXT} intervals: {names} are crossed clusters, of which neither is a part of the other."
    comparisons = _crossed_comparisons(first.comparisons, second.comparisons, both.comparisons)
    without = list({(each.first, each.second, each.by): each for each in (*second.without, *first.without)}.values())
    known = {*map(str, first.without)}
    further = [each for each in first.notes if not each.startswith(CONFIDENCE_TEXT) and each not in known]
    cautions = {str(each): each for each in (*first.cautions, *second.cautions)}
    changed: dict[str, Any] = {"notes": [note, *map(str, without), *further], "cautions": [*cautions.values()]}
    return replace(first, models=models, groups=groups, comparisons=comparisons, without=without, **changed)


def _crossed(*by_clusters: Scores) -> ClassifierScores:
    first, second, both = cast("tuple[ClassifierScores, ...]", by_clusters)
    without = {**both.without_interval, **second.without_interval, **first.without_interval}
    rates = {
        name: _crossed_ends(
            {rate: value for rate, value in first.per_class()[name].items() if isinstance(value, float)},
            *(each.class_intervals.get(name, {}) for each in (first, second, both)),
        )
        for name in first.class_intervals
    }
    intervals = _crossed_ends(first.values, *(each.intervals for each in (first, second, both)))
    return replace(first, intervals=intervals, without_interval=without, class_intervals=rates)


def _crossed_ends(values: Mapping[str, float], first: Ends, second: Ends, both: Ends) -> dict[str, Interval]:
    """Return the intervals of the values that have one by both kinds of clusters."""
    ends = dict[str, Interval]()
    for name in first.keys() & second.keys():
        value = values[name]
        of_both = both.get(name, (value, value))
        below, above = (
            _distance(*(abs(value - each[end]) for each in (first[name], second[name], of_both))) for end in (0, 1)
        )
        lowest, highest = (min(first[name][0], second[name][0]), max(first[name][1], second[name][1]))
        ends[name] = value - below, value + above
        if lowest >= 0 and highest <= 1:  # of a rate
            ends[name] = max(0.0, value - below), min(1.0, value + above)
    return {name: ends[name] for name in first if name in ends}


def _distance(first: float, second: float, both: float) -> float:
    """Return how far an end is from the value."""
    if not isfinite(first + second):
        return inf
    return sqrt(max(first**2 + second**2 - (both**2 if isfinite(both) else 0), first**2, second**2))


def _crossed_comparisons(*results: Sequence[Comparison]) -> list[Comparison]:
    by_key = [{(row.first, row.second, row.measure): row for row in rows} for rows in results]
    rows = list[tuple[str, str, Measure, PairedDifference]]()
    for key, row in by_key[0].items():
        if key not in by_key[1]:
            continue
        change = row.paired.difference
        ends = [each[key].paired[3:5] if key in each else (change, change) for each in by_key]
        below, above = (_distance(*(abs(change - each[end]) for each in ends)) for end in (0, 1))
        rows.append((row.first, row.second, row.by, _difference(row.paired, below, above)))
    return with_verdicts(rows, CONFIDENCE) if rows else []


def _difference(paired: PairedDifference, below: float, above: float) -> PairedDifference:
    """Return a difference with the p-value that is at most 0.05 where its interval excludes 0."""
    from scipy.special import ndtr  # scipy.stats takes longer to import

    change, half = paired.difference, below if paired.difference > 0 else above
    p_value = 1.0 if half == inf or not isfinite(change) else 2 * float(ndtr(-quantile(inf) * abs(change) / half))
    return PairedDifference(*paired[:2], change, change - below, change + above, p_value)
