"""Intervals of the metrics of a detector whose trials share speakers, patients or recordings."""

from collections.abc import Callable, Sequence

from torch import Tensor

from mpcs_torch.functional import (
    Resamples,
    actual_cost_statistic,
    area_statistic,
    cllr_statistic,
    clopper_pearson,
    equal_error_statistic,
)
from mpcs_torch.functional.comparison.bootstrap import interval_of, statistics_of, unless_all_agree
from mpcs_torch.functional.comparison.sample_statistics import Statistic
from mpcs_torch.functional.detection.cost_interval import combined_interval
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

    All resamples of a rate of 0 or 1 are the same, which would promise too much: such a rate has the interval of
    Clopper and Pearson, in which each cluster counts as one trial, and so has the cost that it is a part of.

    Raises:
        ValueError: If the clusters are too few.
    """
    drawn = Resamples(len(trials.labels), number=resamples, strata=trials.labels, clusters=clusters)
    statistics = _statistics(values, fixed, trials)
    found = statistics_of([each for of_value in statistics.values() for each in of_value], drawn, advance)
    rows, intervals = iter(found), dict[str, list[Interval]]()
    for name, of_value in statistics.items():
        intervals[name] = [interval_of(next(rows), drawn.independent, confidence) for _ in of_value]
    numbers = [len(clusters[of_kind].unique()) for of_kind in (trials.labels, ~trials.labels)]  # type: ignore[no-untyped-call]
    by_name = {threshold.name: threshold for threshold in fixed}
    return [
        _at_threshold(value, by_name[value.name], intervals[value.name], numbers, confidence)
        if value.name in by_name
        else value._replace(interval=unless_all_agree(*intervals[value.name][0]) if value.name in intervals else None)
        for value in values
    ]


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


def _at_threshold(
    value: Value, fixed: FixedThreshold, drawn: Sequence[Interval], numbers: Sequence[int], confidence: float
) -> Value:
    """Give a value at a threshold its intervals: of itself and of both rates."""
    assert value.cost is not None
    rates = [value.cost.p_miss.item(), value.cost.p_fa.item()]
    interval, *of_rates = drawn
    for place, (rate, number) in enumerate(zip(rates, numbers, strict=True)):
        if rate in (0, 1):
            of_rates[place] = clopper_pearson(int(rate) * number, number, confidence=confidence)
    if any(rate in (0, 1) for rate in rates):
        if fixed.shown in ("miss rate", "false-alarm rate"):
            interval = of_rates[fixed.shown == "false-alarm rate"]
        else:
            interval = combined_interval(rates, of_rates, fixed.point, normalize=fixed.shown == "cost")
    return value._replace(interval=unless_all_agree(*interval), rates=(of_rates[0], of_rates[1]))
