"""The intervals of the equal error rate, and of costs that are sums of two error rates."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from math import hypot
from typing import NamedTuple

from mpcs_torch.functional.comparison.means import Interval, Mean
from mpcs_torch.functional.detection.errors import ErrorCounts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE


class EqualErrorEnds(NamedTuple):
    """The interval of the equal error rate, and the slopes from which differences are computed."""

    interval: Interval
    slopes: tuple[float, float]
    """The derivatives with respect to the miss rate and the false-alarm rate, scaled to the sum 1."""


def combined(value: float, means: Sequence[Mean], limits: Interval) -> Interval:
    """Return the interval, clipped to ``limits``, of a ``value``: a constant plus the sum of independent ``means``.

    The intervals of the means are combined by square-and-add (MOVER: Zou and Donner, Construction of confidence
    intervals about effect measures, Statistics in Medicine 27, 2008).
    """
    below = above = 0.0
    for mean in means:
        low, high = mean.interval(CONFIDENCE)
        below = hypot(below, mean.value - low)
        above = hypot(above, high - mean.value)
    return max(limits[0], value - below), min(limits[1], value + above)


def equal_error_ends(
    counts: ErrorCounts,
    rate: float,
    threshold: float,
    errors_at: Callable[[float], Sequence[Mean]],
) -> EqualErrorEnds:
    """Return the interval of the equal error rate, and its derivatives by the miss rate and the false-alarm rate.

    Both results come from equal error rates of shifted curves: at every threshold, the miss rate, the false-alarm rate
    or both are moved to an end of their intervals. ``rate`` is the equal error rate, interpolated between thresholds.
    ``errors_at`` returns the miss rate and the false-alarm rate at a threshold. At ``threshold``, they are nearly
    equal.
    """
    rates = counts.rates()
    last = len(counts.thresholds) - 1

    @cache
    def end_of_rate(place: int, kind: int, is_upper: bool) -> float:
        return errors_at(rates.thresholds[place].item())[kind].end(
            CONFIDENCE, is_upper=is_upper
        )

    def crossing(is_upper: bool, *, shifts_misses: bool, shifts_alarms: bool) -> float:
        def rates_at(place: int) -> tuple[float, float]:
            miss, alarm = rates.p_miss[place].item(), rates.p_fa[place].item()
            if shifts_misses:
                miss = end_of_rate(place, 0, is_upper)
            if shifts_alarms:
                alarm = end_of_rate(place, 1, is_upper)
            return miss, alarm

        def is_crossed(place: int) -> bool:
            miss, alarm = rates_at(place)
            return miss >= alarm

        # Misses rise and false alarms fall with the threshold. If they cross nowhere before the last, it is the last.
        first = bisect_left(range(last), True, key=is_crossed)
        miss, alarm = rates_at(first)
        if first == 0 or miss == alarm:
            return miss
        miss_before, alarm_before = rates_at(first - 1)
        gap_before = alarm_before - miss_before
        span = gap_before + miss - alarm
        if span == 0:  # infinite scores move neither rate
            return miss_before
        return miss_before + gap_before / span * (miss - miss_before)

    of_miss = [
        crossing(is_upper, shifts_misses=True, shifts_alarms=False)
        for is_upper in (False, True)
    ]
    of_alarm = [
        crossing(is_upper, shifts_misses=False, shifts_alarms=True)
        for is_upper in (False, True)
    ]
    of_both = [
        crossing(is_upper, shifts_misses=True, shifts_alarms=True)
        for is_upper in (False, True)
    ]
    below = hypot(rate - of_miss[0], rate - of_alarm[0])
    above = hypot(rate - of_miss[1], rate - of_alarm[1])
    slopes = list[float]()
    for ends, mean in zip((of_miss, of_alarm), errors_at(threshold), strict=True):
        low, high = mean.interval(CONFIDENCE)
        slopes.append((ends[1] - ends[0]) / (high - low))
    of_misses, of_alarms = slopes
    scaled = of_misses / sum(slopes), of_alarms / sum(slopes)
    interval = max(rate - below, of_both[0]), min(rate + above, of_both[1])
    return EqualErrorEnds(interval, scaled)
