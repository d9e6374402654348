"""Combine intervals for crossed clusters, such as patients and readers.

Crossed clusters are, for example, cases that were all read by the same readers. Intervals with patients as clusters do
not allow for other readers, and the reverse. To allow for both, the variances by patient and by reader are added, and
the variance by pair is subtracted (Cameron, Gelbach and Miller: Robust inference with multiway clustering, Journal of
Business and Economic Statistics 29, 2011). Here, the same is done with the squared distances from a value to the ends
of its intervals. The result is at least as wide as the interval by either column.
"""

from collections.abc import Sequence
from math import inf, isfinite, sqrt

from mpcs_torch.evaluation.paired_differences import p_of_normal_interval
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval

Ends = Interval | Reason
"""An interval, or the reason why there is none."""


def crossed_interval(value: float, intervals: Sequence[Ends]) -> Ends:
    """Combine the intervals of a ``value`` by the first column of clusters, by the second, and by pairs of both.

    A single interval is returned as it is. If there is no interval by the first column, or by the second, the reason is
    returned.
    """
    if len(intervals) == 1:
        return intervals[0]
    ends = _combined(value, intervals)
    if isinstance(ends, Reason):
        return ends
    of_columns = [each for each in intervals[:2] if not isinstance(each, Reason)]
    is_rate = all(low >= 0 and high <= 1 for low, high in of_columns)
    return (max(0.0, ends[0]), min(1.0, ends[1])) if is_rate else ends


def crossed_difference(
    differences: Sequence[PairedDifference | Reason],
) -> PairedDifference | Reason:
    """Combine differences of two models by the first column of clusters, by the second, and by pairs of both.

    The p-value is at most 0.05 exactly if the interval excludes 0. A single difference is returned as it is.
    """
    first = differences[0]
    if len(differences) == 1 or isinstance(first, Reason):
        return first
    intervals = [
        each if isinstance(each, Reason) else (each.low, each.high) for each in differences
    ]
    ends = _combined(first.difference, intervals)
    if isinstance(ends, Reason):
        return ends
    low, high = ends
    p_value = p_of_normal_interval(first.difference, low, high)
    return first._replace(low=low, high=high, p_value=p_value)


def _combined(value: float, intervals: Sequence[Ends]) -> Ends:
    """Combine three intervals of ``value``, for which rows are clustered by the first column, the second, and both."""
    first, second, both = intervals
    if isinstance(first, Reason):
        return first
    if isinstance(second, Reason):
        return second
    if isinstance(both, Reason):  # nothing is subtracted
        both = (value, value)
    distances = list[float]()
    for end in (0, 1):
        one = abs(value - first[end])
        other = abs(value - second[end])
        pair = abs(value - both[end])
        if not isfinite(one + other):
            distances.append(inf)
            continue
        square = one**2 + other**2
        if isfinite(pair):
            square -= pair**2
        distances.append(sqrt(max(square, one**2, other**2)))
    return value - distances[0], value + distances[1]
