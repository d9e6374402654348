"""Show how often intervals of detection costs hold the true cost: python -m benchmarks.cost_intervals."""

from collections.abc import Callable
from math import log

import numpy as np
from scipy.stats import binom

from mpcs_torch.cli.console import counting_bar
from mpcs_torch.functional import OperatingPoint, clopper_pearson

SETTINGS = 3000
TAIL = 1e-9
"""Probability of numbers of errors that are left out on each side."""


def coverage_of(
    targets: int, nontargets: int, p_miss: float, p_fa: float, point: OperatingPoint
) -> tuple[float, float, float]:
    """Return the probability that the interval holds the true cost, its mean width, and that after Bonferroni."""
    truth = point.weights[0] * p_miss + point.weights[1] * p_fa
    low, high, bonferroni = ends_of(
        _likely(targets, p_miss), targets, _likely(nontargets, p_fa), nontargets, point
    )
    probability = np.outer(
        binom.pmf(_likely(targets, p_miss), targets, p_miss),
        binom.pmf(_likely(nontargets, p_fa), nontargets, p_fa),
    )
    held = (low <= truth) & (truth <= high)
    return (
        (probability * held).sum(),
        (probability * (high - low)).sum(),
        (probability * bonferroni).sum(),
    )


def ends_of(
    misses: range, targets: int, false_alarms: range, nontargets: int, point: OperatingPoint
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends by square-and-add, not normalised, and widths after Bonferroni, for all pairs of errors."""
    cost, below, above, bonferroni = [], [], [], []
    for errors, number, weight in (
        (misses, targets, point.weights[0]),
        (false_alarms, nontargets, point.weights[1]),
    ):
        low, high = np.array([clopper_pearson(each, number) for each in errors]).T
        rate = np.array(errors) / number
        cost.append(weight * rate)
        below.append(weight * (rate - low))
        above.append(weight * (high - rate))
        wide = np.array(
            [clopper_pearson(each, number, confidence=0.975) for each in errors]
        )
        bonferroni.append(weight * (wide[:, 1] - wide[:, 0]))
    value = np.add.outer(*cost)
    return (
        value - np.hypot.outer(*below),
        value + np.hypot.outer(*above),
        np.add.outer(*bonferroni),
    )


def exact_coverage(settings: int, advance: Callable[[], None]) -> str:
    """Return the lowest probability over random settings that the interval holds the true cost, in sentences."""
    generator = np.random.default_rng(0)
    found, few = [], []
    for _ in range(settings):
        targets = int(np.exp(generator.uniform(log(20), log(1000))))
        nontargets = int(targets * 10 ** generator.uniform(0, 1))
        p_miss, p_fa = map(
            float, np.exp(generator.uniform(np.log([0.002, 0.0005]), np.log([0.5, 0.2])))
        )
        point = OperatingPoint(float(10 ** generator.uniform(-3, np.log10(0.5))))
        found.append(coverage_of(targets, nontargets, p_miss, p_fa, point))
        few.append(targets * p_miss < 1 and nontargets * p_fa < 1)
        advance()
    held, width, bonferroni = np.array(found).T
    rare = np.array(few)
    return (
        f"the interval holds the true cost with a probability of at least {held[~rare].min():.4f} in {(~rare).sum()} "
        f"random settings, and {held[rare].min():.4f} in {rare.sum()} settings that lead to less than one error of "
        f"each kind (mean {held.mean():.4f}). Bonferroni's is {np.median(bonferroni / width):.2f} times as wide."
    )


def _likely(trials: int, rate: float) -> range:
    low, high = binom.ppf([TAIL, 1 - TAIL], trials, rate)
    return range(int(low), int(high) + 1)


def main() -> None:
    """Print how often the interval holds the true cost."""
    with counting_bar("settings", SETTINGS) as advance:
        told = exact_coverage(SETTINGS, lambda: advance(1))
    print(told)


if __name__ == "__main__":
    main()
