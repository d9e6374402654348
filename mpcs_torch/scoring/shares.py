"""Trials that are too many for one process: each holds those of one range of scores, ascending with its rank.

So each process counts the errors of all trials at its own thresholds, once it knows how many targets score lower and
how many non-targets score higher. All processes then get the same points of the curve: those that a value depends on.
"""

from collections.abc import Callable, Sequence
from math import inf

import torch
from torch import Tensor

from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.detection.cost import where_minimal
from mpcs_torch.functional.detection.equal_error_rate import nearest_to_equal
from mpcs_torch.functional.detection.errors import ErrorCounts, area_of_lost, area_under_roc, lost_pairs
from mpcs_torch.functional.detection.visible import visible_points
from mpcs_torch.processes.world import World
from mpcs_torch.scoring.trials import Trials

SAMPLE = 1000
"""Without ties, no process holds more than its share of the trials by more than this part of all."""
BLOCK = 2**18
"""The number of thresholds at a time, which bounds the memory of looking for those that matter."""


def exchange_ranges(trials: Trials, world: World) -> Trials:
    """Exchange trials, so that this process holds those of one range of scores; equal scores stay together."""
    if world.size == 1:
        return trials
    scores, order = trials.scores.sort()
    labels = trials.labels[order]
    step = max(1, sum(world.told_by_all(len(scores))) // (SAMPLE * world.size))
    sample = torch.cat(world.told_by_all(scores[::step].clone())).sort().values
    bounds = sample[[len(sample) * rank // world.size for rank in range(1, world.size)]]
    starts = torch.searchsorted(scores, bounds).tolist()
    sizes = [end - start for start, end in zip([0, *starts], [*starts, len(scores)], strict=True)]
    return Trials(world.exchange(scores, sizes), world.exchange(labels, sizes))


def places_of(own: Sequence[int], world: World) -> list[tuple[range, int]]:
    """Return which of all trials of each kind are own, by ascending score, and how many of the kind there are."""
    found = []
    for number, numbers in zip(own, zip(*world.told_by_all(own), strict=True), strict=True):
        start = sum(numbers[: world.rank])
        found.append((range(start, start + number), sum(numbers)))
    return found


def errors_of_all(
    own: ErrorCounts, world: World, needed: Callable[[ErrorCounts], Tensor]
) -> tuple[ErrorCounts, Tensor]:
    """Count the errors of the trials of all processes, and compute the area under the ROC.

    Args:
        own: The errors of the trials of this process, at its thresholds.
        world: The processes. A process that is alone returns all its thresholds.
        needed: From the errors of all trials at some thresholds of this process, with those that accept and reject all
            trials around them, it returns the indices of the thresholds that the others need.
    """
    if world.size == 1:
        return own, area_under_roc(own)
    kinds = places_of([int(own.targets), int(own.nontargets)], world)
    (targets, all_targets), (nontargets, all_nontargets) = kinds
    higher = all_nontargets - nontargets.stop
    kept, lost = [], own.misses.new_zeros(())
    for start in range(0, len(own.misses) - 1, BLOCK):
        block = slice(start, start + BLOCK + 1)  # of which the last is the first of the next
        piece = ErrorCounts(own.misses[block] + targets.start, own.false_alarms[block] + higher, own.thresholds[block])
        lost += lost_pairs(piece)
        curve = ErrorCounts(
            _within(piece.misses, 0, all_targets),
            _within(piece.false_alarms, all_nontargets, 0),
            _within(piece.thresholds, -inf, inf),
        )
        ends = piece.misses.new_tensor([1, len(piece.misses) - 1])
        places = torch.cat([needed(curve), ends]).unique()  # type: ignore[no-untyped-call]
        kept.append(curve.at(places[(places >= ends[0]) & (places <= ends[1])]))
    told = world.told_by_all((kept, lost))
    end = ErrorCounts(lost.new_tensor([all_targets]), lost.new_tensor([0]), own.thresholds.new_tensor([inf]))
    parts = [*(part for parts, _ in told for part in parts), end]
    counts = ErrorCounts(*(torch.cat(fields) for fields in zip(*parts, strict=True)))
    return counts, area_of_lost(torch.stack([lost for _, lost in told]).sum(), counts.targets, counts.nontargets)


def _within(block: Tensor, first: float, last: float) -> Tensor:
    """Put values around those of a block of thresholds, of which the last belongs to the next block."""
    return torch.cat([block.new_tensor([first]), block[:-1], block.new_tensor([last])])


def around_equal_rates(curve: ErrorCounts) -> Tensor:
    """Return the indices of the last threshold with fewer misses than false alarms, in rates, and of the next."""
    after = (curve.misses * curve.nontargets >= curve.false_alarms * curve.targets).int().argmax()
    return torch.stack([(after - 1).clamp(min=0), after])


def thresholds_that_matter(curve: ErrorCounts, points: Sequence[OperatingPoint], thresholds: Tensor) -> Tensor:
    """Return the indices of all thresholds on which a value or a figure can depend.

    Args:
        curve: The errors at some thresholds.
        points: The operating points of the minimum costs. Thresholds that tie at the minimum are all returned.
        thresholds: Those at which errors are looked up.
    """
    everywhere = torch.arange(len(curve.thresholds), device=curve.thresholds.device)
    best = [where_minimal(curve, point, everywhere) for point in points]
    special = torch.cat([nearest_to_equal(curve).unsqueeze(0), *best])
    rates = curve.rates()
    found = [
        hull_vertices(curve),
        around_equal_rates(curve),
        visible_points(rates.p_fa, rates.p_miss),
        torch.searchsorted(curve.thresholds, thresholds),
        special - 1,  # with its threshold, an interval begins
        special,
    ]
    return torch.cat(found).clamp(0, len(everywhere) - 1)
