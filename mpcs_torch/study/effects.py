"""Effects over seeds, with their intervals."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

Sample = NDArray[np.float64]
"""A value for each seed."""
Effect = tuple[float, float, float]
"""A mean effect and its 95 % bootstrap interval over seeds."""


def paired_effect(ours: Sample, theirs: Sample, *, relative: bool) -> Effect:
    """Compute the difference of means, or the relative reduction, with its 95 % bootstrap interval over seeds."""

    def effect(a: Sample, b: Sample, axis: int = -1) -> Any:
        a_mean, b_mean = a.mean(axis=axis), b.mean(axis=axis)
        return (b_mean - a_mean) / b_mean if relative else a_mean - b_mean

    value = float(effect(ours, theirs))
    if np.ptp(ours - theirs) == 0 and (not relative or np.ptp(theirs) == 0 or (ours == theirs).all()):
        return value, value, value
    interval = bootstrap(
        (ours, theirs), effect, paired=True, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return value, float(interval.low), float(interval.high)
