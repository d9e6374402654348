"""Intervals of the metrics of a detector whose trials share speakers, patients or recordings."""

from collections.abc import Callable, Sequence

from torch import Tensor

from mpcs_torch.functional import (
    Resamples,
    actual_cost_statistic,
    area_statistic,
    cllr_statistic,
    equal_error_statistic,
)
from mpcs_torch.functional.comparison.bootstrap import interval_of, statistics_of
from mpcs_torch.functional.comparison.sample_statistics import Statistic
from mpcs_torch.scoring.bootstrap import AREA, CLLR, EQUAL_ERROR
from mpcs_torch.scoring.detection_scores import Interval, Value
from mpcs_torch.scoring.thresholds import FixedThreshold
from mpcs_torch.scoring.trials import Trials


def cluster_intervals(
    values: Sequence[Value],
    fixed: Sequence[FixedThreshold],
    trials: Trials,
    clusters: Tensor,
    resamples: int,
    confidence: float,
    advance: Callable[[int], None],
) -> list[Value]:
    """Give values the intervals of a bootstrap of whole clusters.

    Raises:
        ValueError: If the clusters are too few.
    """
    drawn = Resamples(len(trials.labels), number=resamples, strata=trials.labels, clusters=clusters)
    statistics = _statistics(values, fixed, trials)
    found = statistics_of([each for of_value in statistics.values() for each in of_value], drawn, advance)
    rows, intervals = iter(found), dict[str, list[Interval]]()
    for name, of_value in statistics.items():
        intervals[name] = [interval_of(next(rows), drawn.independent, confidence) for _ in of_value]
    return [_with(value, intervals.get(value.name, [])) for value in values]


def _statistics(values: Sequence[Value], fixed: Sequence[FixedThreshold], trials: Trials) -> dict[str, list[Statistic]]:
    """Return the statistic of each value that has an interval; after it, for a threshold, those of both rates."""
    statistics = {EQUAL_ERROR: [equal_error_statistic(*trials)], AREA: [area_statistic(*trials)]}
    if any(value.name == CLLR for value in values):
        statistics[CLLR] = [cllr_statistic(*trials)]
    for threshold in fixed:
        rejected = trials.scores < threshold.threshold
        rates = [_share(rejected, trials.labels), _share(~rejected, ~trials.labels)]
        statistics[threshold.name] = [_shown(threshold, trials, rates), *rates]
    return statistics


def _shown(fixed: FixedThreshold, trials: Trials, rates: Sequence[Statistic]) -> Statistic:
    match fixed.shown:
        case "cost":
            return actual_cost_statistic(*trials, point=fixed.point, threshold=fixed.threshold)
        case "half total error rate":
            return lambda weights: (rates[0](weights) + rates[1](weights)) / 2
        case "miss rate":
            return rates[0]
        case "false-alarm rate":
            return rates[1]


def _share(is_counted: Tensor, is_of: Tensor) -> Statistic:
    """Make a statistic of how many of some trials are counted."""
    counted = (is_counted & is_of).double()
    return lambda weights: weights.double() @ counted / (weights.double() @ is_of.double())


def _with(value: Value, intervals: Sequence[Interval]) -> Value:
    if not intervals:
        return value
    interval, *rates = intervals
    return value._replace(interval=interval, rates=(rates[0], rates[1]) if rates else None)
