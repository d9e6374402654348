"""Definitions of Kinnunen's slides and the BOSARIS guide in plain Python, by trying every threshold."""

import math
from itertools import combinations

Point = tuple[float, float, float]
"""p_target, c_miss, c_fa."""


def curve(scores: list[float], labels: list[bool]) -> list[tuple[float, float, float]]:
    """Return (p_miss, p_fa, threshold) for every distinct score and for infinity."""
    targets = [s for s, is_target in zip(scores, labels, strict=True) if is_target]
    nontargets = [s for s, is_target in zip(scores, labels, strict=True) if not is_target]
    return [
        (sum(s < t for s in targets) / len(targets), sum(s >= t for s in nontargets) / len(nontargets), t)
        for t in [*sorted(set(scores)), math.inf]
    ]


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


def cost_at(scores: list[float], labels: list[bool], threshold: float, point: Point) -> float:
    miss = sum(s < threshold for s, y in zip(scores, labels, strict=True) if y) / sum(labels)
    fa = sum(s >= threshold for s, y in zip(scores, labels, strict=True) if not y) / (len(labels) - sum(labels))
    return cost(miss, fa, point)


def cllr(scores: list[float], labels: list[bool]) -> float:
    targets = [math.log2(1 + math.exp(-s)) for s, y in zip(scores, labels, strict=True) if y]
    nontargets = [math.log2(1 + math.exp(s)) for s, y in zip(scores, labels, strict=True) if not y]
    return (sum(targets) / len(targets) + sum(nontargets) / len(nontargets)) / 2


def min_cllr(scores: list[float], labels: list[bool]) -> float:
    """Pool adjacent violators, block by block, and return the cost of the calibrated ratios."""
    blocks: list[list[float]] = []  # [targets, trials]
    for score in sorted(set(scores)):
        tied = [y for s, y in zip(scores, labels, strict=True) if s == score]
        blocks.append([sum(tied), len(tied)])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
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
