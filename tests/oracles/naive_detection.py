"""Definitions of Kinnunen's slides and the BOSARIS guide in plain Python, by trying every threshold."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, groupby, pairwise

from scipy.integrate import quad
from scipy.stats import beta, binomtest
from sklearn.metrics import roc_auc_score

Point = tuple[float, float, float]
"""p_target, c_miss, c_fa."""


def curve(scores: list[float], labels: list[bool]) -> list[tuple[float, float, float]]:
    """Return (p_miss, p_fa, threshold) for every distinct score and for infinity."""
    targets = [s for s, is_target in zip(scores, labels, strict=True) if is_target]
    nontargets = [s for s, is_target in zip(scores, labels, strict=True) if not is_target]
    return [
        (
            sum(s < t for s in targets) / len(targets),
            sum(s >= t for s in nontargets) / len(nontargets),
            t,
        )
        for t in [*sorted(set(scores)), math.inf]
    ]


def cost_interval(
    misses: tuple[int, int], alarms: tuple[int, int], weights: Sequence[float]
) -> tuple[float, float]:
    """Return the interval of a cost by square-and-add (Zou and Donner, 2008), from errors and trials of each kind."""
    cost, below, above = 0.0, 0.0, 0.0
    for (errors, trials), weight in zip((misses, alarms), weights, strict=True):
        ends = binomtest(errors, trials).proportion_ci(method="exact")
        cost += weight * errors / trials
        below += (weight * (errors / trials - ends.low)) ** 2
        above += (weight * (ends.high - errors / trials)) ** 2
    return cost - math.sqrt(below), cost + math.sqrt(above)


def equal_error_rate(scores: list[float], labels: list[bool]) -> float:
    """Return the largest Bayes error over all priors, which lies at a prior where two thresholds are equally good."""
    points = curve(scores, labels)
    priors = [0.5]
    for (miss, fa, _), (other_miss, other_fa, _) in combinations(points, 2):
        rise, fall = other_miss - miss, fa - other_fa
        if rise + fall > 0:
            priors.append(fall / (rise + fall))
    return max(min(p * miss + (1 - p) * fa for miss, fa, _ in points) for p in priors)


def cost(miss: float, fa: float, point: Point) -> float:
    """Return the normalised cost."""
    p, c_miss, c_fa = point
    return (c_miss * p * miss + c_fa * (1 - p) * fa) / min(c_miss * p, c_fa * (1 - p))


def min_cost(scores: list[float], labels: list[bool], point: Point) -> float:
    return min(cost(miss, fa, point) for miss, fa, _ in curve(scores, labels))


def best_threshold(scores: list[float], labels: list[bool], point: Point) -> float:
    """Return the middle of the interval of thresholds with the minimum cost: of several, of the widest bounded one.

    Of equally wide ones it is the lowest. Accepting all (-inf) comes before rejecting all (inf), and both only where no
    bounded interval is as good; 0 is the middle where all thresholds are.
    """
    p, c_miss, c_fa = map(Fraction, point)
    places = [-math.inf, *sorted(set(scores)), math.inf]
    intervals = []
    # All thresholds above `low` and up to `high` accept the same trials.
    for low, high in pairwise(places):
        misses = Fraction(
            sum(s < high for s, y in zip(scores, labels, strict=True) if y), sum(labels)
        )
        accepted = sum(s >= high for s, y in zip(scores, labels, strict=True) if not y)
        false_alarms = Fraction(accepted, len(labels) - sum(labels))
        intervals.append((c_miss * p * misses + c_fa * (1 - p) * false_alarms, low, high))
    low, high = widest_of_best(intervals)
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low):
        return low
    if math.isinf(high):
        return high
    return (low + high) / 2


def widest_of_best(
    intervals: Sequence[tuple[Fraction, float, float]],
) -> tuple[float, float]:
    """Join neighbours with the lowest value, and return the ends of the widest bounded one, of which the lowest.

    Without a bounded one, it is the lowest.
    """
    best, joined = min(intervals)[0], list[tuple[float, float]]()
    for is_best, run in groupby(intervals, key=lambda interval: interval[0] == best):
        (_, low, high), *others = run
        if others:
            _, _, high = others[-1]
        if is_best:
            joined.append((low, high))
    bounded = [ends for ends in joined if not any(map(math.isinf, ends))]
    if not bounded:
        return joined[0]
    # `max` takes the first of equals.
    return max(bounded, key=lambda ends: ends[1] - ends[0])


def nearest_to_equal(scores: list[float], labels: list[bool]) -> tuple[float, float, float]:
    """Return the mean of the rates where they differ least, and the interval of the lowest such thresholds."""
    targets, nontargets = sum(labels), len(labels) - sum(labels)
    found = []
    for low, high in pairwise([-math.inf, *sorted(set(scores)), math.inf]):
        miss = Fraction(
            sum(s < high for s, y in zip(scores, labels, strict=True) if y), targets
        )
        fa = Fraction(
            sum(s >= high for s, y in zip(scores, labels, strict=True) if not y), nontargets
        )
        found.append((abs(miss - fa), low, high, float((miss + fa) / 2)))
    _, low, high, rate = min(found)
    return rate, low, high


def cost_at(
    scores: list[float], labels: list[bool], threshold: float, point: Point
) -> float:
    targets = [s for s, is_target in zip(scores, labels, strict=True) if is_target]
    nontargets = [s for s, is_target in zip(scores, labels, strict=True) if not is_target]
    miss = sum(s < threshold for s in targets) / len(targets)
    fa = sum(s >= threshold for s in nontargets) / len(nontargets)
    return cost(miss, fa, point)


def cllr(scores: list[float], labels: list[bool]) -> float:
    targets = [
        math.log2(1 + math.exp(-s)) for s, y in zip(scores, labels, strict=True) if y
    ]
    nontargets = [
        math.log2(1 + math.exp(s)) for s, y in zip(scores, labels, strict=True) if not y
    ]
    return (sum(targets) / len(targets) + sum(nontargets) / len(nontargets)) / 2


def min_cllr(scores: list[float], labels: list[bool]) -> float:
    """Pool adjacent violators, block by block, and return the cost of the calibrated ratios."""
    blocks: list[list[float]] = []  # [targets, trials]
    for score in sorted(set(scores)):
        tied = [y for s, y in zip(scores, labels, strict=True) if s == score]
        blocks.append([sum(tied), len(tied)])
        while (
            len(blocks) > 1
            and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]
        ):
            targets, trials = blocks.pop()
            blocks[-1] = [blocks[-1][0] + targets, blocks[-1][1] + trials]
    all_targets = sum(labels)
    odds = all_targets / (len(labels) - all_targets)
    total = 0.0
    for targets, trials in blocks:
        if targets:
            ratio = targets / (trials - targets) / odds if targets < trials else math.inf
            total += targets * math.log2(1 + 1 / ratio) / all_targets
        if targets < trials:
            ratio = targets / (trials - targets) / odds
            total += (trials - targets) * math.log2(1 + ratio) / (len(labels) - all_targets)
    return total / 2


def partial_auc(scores: list[float], labels: list[bool], limit: float) -> float:
    """Return the area that `sklearn.metrics.roc_auc_score` computes."""
    return float(roc_auc_score(labels, scores, max_fpr=limit))


def miss_at_false_alarm(scores: list[float], labels: list[bool], limit: float) -> float:
    return min(miss for miss, fa, _ in curve(scores, labels) if fa <= limit)


def break_even(scores: list[float], labels: list[bool]) -> float:
    """Return the equal error rate of a curve in numbers of errors: the largest Bayes error where both cost alike."""
    points = [
        (miss * sum(labels), fa * (len(labels) - sum(labels)))
        for miss, fa, _ in curve(scores, labels)
    ]
    shares = [0.5]
    for (miss, fa), (other_miss, other_fa) in combinations(points, 2):
        rise, fall = other_miss - miss, fa - other_fa
        if rise + fall > 0:
            shares.append(fall / (rise + fall))
    return max(min(p * miss + (1 - p) * fa for miss, fa in points) for p in shares)


def h_measure(scores: list[float], labels: list[bool]) -> float:
    """Integrate the cost of the best threshold numerically, between the costs at which it changes."""
    share, points = sum(labels) / len(labels), curve(scores, labels)

    def least(cost: float) -> float:
        return min(
            cost * (1 - share) * fa + (1 - cost) * share * miss for miss, fa, _ in points
        )

    def expected(value: Callable[[float], float], turns: list[float]) -> float:
        density = beta(1 + share, 2 - share).pdf
        ends = [0.0, *sorted(turns), 1.0]
        return sum(
            quad(lambda c: value(c) * density(c), *pair, epsabs=1e-12)[0]
            for pair in pairwise(ends)
        )

    turns = set()
    for (miss, fa, _), (other_miss, other_fa, _) in combinations(points, 2):
        rise, fall = share * (other_miss - miss), (1 - share) * (fa - other_fa)
        if rise + fall > 0:
            turns.add(rise / (rise + fall))
    constant = expected(lambda c: min(c * (1 - share), (1 - c) * share), [share])
    kept = [turn for turn in turns if 0 < turn < 1 and _is_kink(least, turn)]
    return 1 - expected(least, kept) / constant


def _is_kink(function: Callable[[float], float], place: float) -> bool:
    """Return whether the slope changes at a place: a second difference that is more than rounding."""
    step = 1e-7
    bend = function(place - step) - 2 * function(place) + function(place + step)
    return abs(bend) > 1e-12
