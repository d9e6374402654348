"""The share of intervals of costs that hold the true cost: exactly for `cost_interval`, and against a bootstrap."""

from collections.abc import Callable
from math import log

import numpy as np
import torch
from scipy.stats import binom

from mpcs_torch.functional import (
    OperatingPoint,
    Resamples,
    actual_cost_statistic,
    bootstrap_interval,
    clopper_pearson,
    cost_interval,
    min_detection_cost,
    min_detection_cost_details,
    stratified_bootstrap,
)
from mpcs_torch.tables import Table
from tests.benchmarks.simulated_systems import llr_truth, trials

TAIL = 1e-9
"""Probability of numbers of errors that are left out on each side."""
SEPARATION = 3.0
POINTS = (OperatingPoint(0.5), OperatingPoint(0.1), OperatingPoint(0.01))
TARGETS, NONTARGETS = 100, 1000


def coverage_of(
    targets: int, nontargets: int, p_miss: float, p_fa: float, point: OperatingPoint
) -> tuple[float, float, float]:
    """Return the probability that `cost_interval` holds the true cost, its mean width, and that after Bonferroni."""
    truth = point.weights[0] * p_miss + point.weights[1] * p_fa
    low, high, bonferroni = ends_of(_likely(targets, p_miss), targets, _likely(nontargets, p_fa), nontargets, point)
    probability = np.outer(
        binom.pmf(_likely(targets, p_miss), targets, p_miss), binom.pmf(_likely(nontargets, p_fa), nontargets, p_fa)
    )
    held = (low <= truth) & (truth <= high)
    return (probability * held).sum(), (probability * (high - low)).sum(), (probability * bonferroni).sum()


def ends_of(
    misses: range, targets: int, false_alarms: range, nontargets: int, point: OperatingPoint
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends of `cost_interval`, not normalised, and widths after Bonferroni, for all pairs of errors."""
    cost, below, above, bonferroni = [], [], [], []
    for errors, number, weight in ((misses, targets, point.weights[0]), (false_alarms, nontargets, point.weights[1])):
        low, high = np.array([clopper_pearson(each, number) for each in errors]).T
        rate = np.array(errors) / number
        cost.append(weight * rate)
        below.append(weight * (rate - low))
        above.append(weight * (high - rate))
        wide = np.array([clopper_pearson(each, number, confidence=0.975) for each in errors])
        bonferroni.append(weight * (wide[:, 1] - wide[:, 0]))
    value = np.add.outer(*cost)
    return value - np.hypot.outer(*below), value + np.hypot.outer(*above), np.add.outer(*bonferroni)


def exact_coverage(settings: int, advance: Callable[[], None], seed: int = 0) -> str:
    """Return the lowest probability over random settings that `cost_interval` holds the true cost, in sentences."""
    generator = np.random.default_rng(seed)
    found, few = [], []
    for _ in range(settings):
        targets = int(np.exp(generator.uniform(log(20), log(1000))))
        nontargets = int(targets * 10 ** generator.uniform(0, 1))
        p_miss, p_fa = map(float, np.exp(generator.uniform(np.log([0.002, 0.0005]), np.log([0.5, 0.2]))))
        point = OperatingPoint(float(10 ** generator.uniform(-3, np.log10(0.5))))
        found.append(coverage_of(targets, nontargets, p_miss, p_fa, point))
        few.append(targets * p_miss < 1 and nontargets * p_fa < 1)
        advance()
    held, width, bonferroni = np.array(found).T
    rare = np.array(few)
    return (
        f"cost_interval holds the true cost with a probability of at least {held[~rare].min():.4f} in {(~rare).sum()} "
        f"random settings, and {held[rare].min():.4f} in {rare.sum()} settings that lead to less than one error of "
        f"each kind (mean {held.mean():.4f}). Bonferroni's is {np.median(bonferroni / width):.2f} times as wide."
    )


def at_a_development_threshold(sets: int, resamples: int, advance: Callable[[], None], seed: int = 0) -> Table:
    """Compare intervals of the minimum cost with those of the cost at a threshold from development trials."""
    generator, truth = torch.Generator().manual_seed(seed), llr_truth(SEPARATION)
    found: dict[tuple[OperatingPoint, str], list[tuple[bool, float]]] = {}
    for number in range(sets):
        developed, judged = (trials(generator, TARGETS, NONTARGETS, (SEPARATION,)) for _ in range(2))
        [scores], labels, _ = judged
        chosen = min_detection_cost_details(developed.scores[0], developed.labels, points=POINTS).threshold.tolist()
        minimum = stratified_bootstrap(
            lambda s, y: min_detection_cost(s, y, points=POINTS), scores, labels, resamples=resamples, seed=number
        )
        for point, threshold, low, high in zip(POINTS, chosen, *(ends.tolist() for ends in minimum), strict=True):
            accepted = scores >= threshold
            errors = int((labels & ~accepted).sum()), TARGETS, int((~labels & accepted).sum()), NONTARGETS
            statistic = actual_cost_statistic(scores, labels, point=point, threshold=threshold)
            drawn = Resamples(len(labels), number=resamples, strata=labels, seed=number)
            fixed = truth.cost(point, threshold)
            for name, true, ends in (
                ("minimum cost, bootstrap", truth.cost(point), (low, high)),
                ("threshold from development, bootstrap", fixed, bootstrap_interval(statistic, drawn)),
                ("threshold from development, cost_interval", fixed, cost_interval(*errors, point=point)),
            ):
                found.setdefault((point, name), []).append((ends[0] <= true <= ends[1], ends[1] - ends[0]))
        advance()
    rows = []
    for (point, name), held in found.items():
        coverage, width = np.mean(held, axis=0)
        rows.append([point.label(), name, f"{truth.cost(point):.3f}", f"{coverage:.3f}", f"{width:.3f}"])
    return Table(["operating point", "interval", "true minimum", "holds the true cost", "mean width"], rows)


def _likely(trials: int, rate: float) -> range:
    low, high = binom.ppf([TAIL, 1 - TAIL], trials, rate)
    return range(int(low), int(high) + 1)
