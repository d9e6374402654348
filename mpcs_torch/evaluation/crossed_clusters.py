"""Combine intervals for crossed clusters, such as patients and readers.

Crossed clusters are, for example, cases that were all read by the same readers. Intervals with patients as clusters do
not allow for other readers, and the reverse. To allow for both, the variances by patient and by reader are added, and
the variance by pair is subtracted (Cameron, Gelbach and Miller: Robust inference with multiway clustering, Journal of
Business and Economic Statistics 29, 2011). Here, the same is done with the squared distances from a value to the ends
of its intervals. The result is at least as wide as the interval by either column.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, sqrt
from typing import Any, cast

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.influence import quantile
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.scores import GroupScores, Scores
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.comparison.significance import ComparedBy, with_verdicts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.groups import row_names

Classified = Result[ClassifierScores]


def crossed_rows(clusters: Mapping[str, Any]) -> list[list[Any]]:
    """Return the clusters of N rows in three lists: by the first column, by the second, and by the pair of both.

    Raises:
        ValueError: If ``clusters`` has not exactly two columns, or if their lengths differ.
    """
    if len(clusters) != 2:
        raise ValueError(f"clusters must be (N,) names, or two columns of them, but got columns {quoted([*clusters])}.")
    columns = [row_names(f"clusters[{name!r}]", rows, len(rows)) for name, rows in clusters.items()]
    return [*columns, list(zip(*columns, strict=True))]


def crossed(results: Iterable[Classified], columns: Iterable[str | None]) -> Classified:
    """Combine three results of the same rows into one: clustered by the first column, by the second, and by both."""
    first, second, both = results
    models = {name: _crossed(first.models[name], second.models[name], both.models[name]) for name in first.models}
    groups = list[GroupScores]()
    for scores, *further in zip(first.groups, second.groups, both.groups, strict=True):
        of_groups = {
            name: _crossed(each, *(other.groups[name] for other in further)) for name, each in scores.groups.items()
        }
        groups.append(scores._replace(pooled=models[scores.model], groups=of_groups))
    names = " and ".join(map(str, columns))
    note = f"{CONFIDENCE_TEXT} intervals: {names} are crossed clusters: neither is nested in the other."
    without = list({(each.first, each.second, each.by): each for each in (*second.without, *first.without)}.values())
    replaced = {*map(str, first.without)}
    notes = [each for each in first.notes if not each.startswith(CONFIDENCE_TEXT) and each not in replaced]
    return replace(
        first,
        models=models,
        groups=groups,
        comparisons=_crossed_comparisons(first.comparisons, second.comparisons, both.comparisons),
        without=without,
        notes=[note, *map(str, without), *notes],
        cautions=[*{str(each): each for each in (*first.cautions, *second.cautions)}.values()],
        paired_units={},
    )


def _crossed(*scores: Scores) -> ClassifierScores:
    first, second, both = cast("tuple[ClassifierScores, ...]", scores)
    rates = {
        name: _crossed_ends(
            {rate: share.value for rate, share in first.rate_shares(name).items()},
            *(each.class_intervals.get(name, {}) for each in (first, second, both)),
        )
        for name in first.class_intervals
    }
    intervals = _crossed_ends(first.values, first.intervals, second.intervals, both.intervals)
    without = {**both.without_interval, **second.without_interval, **first.without_interval}
    return replace(first, intervals=intervals, without_interval=without, class_intervals=rates, units=None)


def _crossed_ends(values: Mapping[str, float], *intervals: Mapping[str, Interval]) -> dict[str, Interval]:
    """Combine the three intervals of each value by `_around`; leave out a value that lacks one of the first two."""
    first, second, both = intervals
    ends = dict[str, Interval]()
    for name in (name for name in first if name in second):
        value = values[name]
        low, high = _around(value, first[name], second[name], both.get(name, (value, value)))
        is_rate = min(first[name][0], second[name][0]) >= 0 and max(first[name][1], second[name][1]) <= 1
        ends[name] = (max(0.0, low), min(1.0, high)) if is_rate else (low, high)
    return ends


def _around(value: float, first: Interval, second: Interval, both: Interval) -> Interval:
    """Combine three intervals of ``value``, for which rows are clustered by the first column, the second, and both."""
    distances = list[float]()
    for end in (0, 1):
        one, other, pair = (abs(value - ends[end]) for ends in (first, second, both))
        square = one**2 + other**2 - (pair**2 if isfinite(pair) else 0)
        distances.append(sqrt(max(square, one**2, other**2)) if isfinite(one + other) else inf)
    return value - distances[0], value + distances[1]


def _crossed_comparisons(*comparisons: Sequence[Comparison]) -> list[Comparison]:
    by_first, by_second, by_both = ({(row.first, row.second, row.measure): row for row in rows} for rows in comparisons)
    rows = list[tuple[str, str, ComparedBy, PairedDifference]]()
    for key, row in by_first.items():
        if key in by_second:
            pair = by_both[key].paired[3:5] if key in by_both else (row.paired.difference,) * 2
            ends = _around(row.paired.difference, row.paired[3:5], by_second[key].paired[3:5], pair)
            rows.append((row.first, row.second, row.by, _difference(row.paired, *ends)))
    return with_verdicts(rows, CONFIDENCE) if rows else []


def _difference(paired: PairedDifference, low: float, high: float) -> PairedDifference:
    """Return ``paired`` with a new interval, and a p-value that is at most 0.05 exactly if the interval excludes 0."""
    from scipy.special import ndtr  # scipy.stats takes longer to import

    change = paired.difference
    half = change - low if change > 0 else high - change
    p_value = 1.0 if half == inf or not isfinite(change) else 2 * float(ndtr(-quantile(inf) * abs(change) / half))
    return paired._replace(low=low, high=high, p_value=p_value)
