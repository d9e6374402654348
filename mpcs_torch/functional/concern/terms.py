"""The score of each sample by MPCS, from intervals of confidences."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float

CorrectConcern = Literal["sum", "count"]

MANY_SAMPLES = 1024
"""From this number of samples on, the work on them outweighs the cost of calling operations."""


class PatternScores(NamedTuple):
    """The scores of M samples, (M,) each (Eq. 9)."""

    by_sum: Tensor
    """Widest float: where the true class has the sum of the concern of the others."""
    by_count: Tensor
    """Widest float: where it has their number; the same tensor if all concern is 1."""
    is_bad: Tensor
    """Bool: whether the scores of the sample are off their scale."""

    def of(self, correct_concern: CorrectConcern) -> Tensor:
        """Return the scores with one of both."""
        return self.by_sum if correct_concern == "sum" else self.by_count


def score_members(
    punishment: Tensor,
    wrong: Tensor,
    weight: Tensor | None,
    *,
    k: int,
    true_present: Tensor,
    true_punishment: Tensor,
    is_bad: Tensor,
) -> PatternScores:
    """Score the prediction patterns of M samples.

    Args:
        punishment: (classes, M), widest float: the punishment of wrong classes in the pattern, and 0 for others. It is
            overwritten.
        wrong: (classes, M): 1 for wrong classes in the pattern, and 0 for others.
        weight: (classes, M), widest float: the concern of the classes, 1 in a pattern without the true class (Alg. 1
            line 7), and by default everywhere. It is overwritten.
        k: The number of classes in the pattern.
        true_present: (M,), widest float: 1 if the pattern holds the true class, else 0.
        true_punishment: (M,), widest float.
        is_bad: (M,), bool.
    """
    if weight is None:
        others_concern = k - true_present
    else:
        weight.mul_(wrong)
        others_concern, punishment = _sum_in_order(weight), punishment.mul_(weight)
    others_punishment = _sum_in_order(punishment)

    def score(true_concern: Tensor) -> Tensor:
        return (others_punishment + true_concern * true_punishment) / (others_concern + true_concern)

    if k == 1:  # the sum of the others is 0 for a pattern that is the true class alone
        alone = score(true_present)
        return PatternScores(alone, alone, is_bad)
    by_sum = score(true_present * others_concern)
    by_count = by_sum if weight is None else score(true_present * (k - 1))
    return PatternScores(by_sum, by_count, is_bad)


def weight_of_classes(concern: Tensor, target: Tensor, true_present: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the concern (C, C) of every class for the true class of each sample, 1 where that is absent: (C, M)."""
    classes = len(concern)
    with_ones = torch.cat([concern.t(), concern.new_ones(classes, 1)], dim=1)
    column = torch.where(true_present > 0, target, classes)
    return torch.gather(with_ones, 1, column.expand(classes, -1), out=out)  # four times as quick as index_select


def _sum_in_order(values: Tensor) -> Tensor:
    """Sum over rows, on a CPU one after the other, so that the score of a sample does not depend on its batch."""
    if not values.is_cpu or torch.compiler.is_compiling():
        return values.sum(dim=0)
    if values.shape[1] < MANY_SAMPLES:
        return values.cumsum(dim=0)[-1]
    total = values[0].clone()
    for row in values[1:]:
        total.add_(row)
    return total


def join(parts: Sequence[PatternScores]) -> PatternScores:
    """Concatenate the scores of parts."""
    if len(parts) == 1:
        return parts[0]
    by_sum, by_count, is_bad = zip(*parts, strict=True)
    joined = torch.cat(by_sum)
    is_same = by_sum[0] is by_count[0]
    return PatternScores(joined, joined if is_same else torch.cat(by_count), torch.cat(is_bad))


LEAST = 1e-7
"""Stands for interval 0, whose logarithm would be infinite."""
TABLED_INTERVALS = 4096
"""Up to this number of intervals t, punishments are looked up in a table, which is quicker than taking logarithms."""


def intervals_of(confidence: Tensor, t: int) -> Tensor:
    """Return the interval of each confidence, from 0 to t (Alg. 1 line 4; only p = 1 gives t), in the widest float."""
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    return confidence.to(widest_float(confidence.device), copy=True).mul_(t).floor_()


def true_punishment(interval: Tensor, t: int) -> Tensor:
    """Return the punishment of the true class in each interval: 0 in the last (Alg. 1 lines 8, 18, 19)."""
    # What is not a number stays so; a table would give it the punishment of interval 0.
    return torch.add(_punishment(interval, t, _of_true_class), interval, alpha=0)


def wrong_punishment(interval: Tensor, t: int) -> Tensor:
    """Return the punishment of a wrong class in each interval: 0 in interval 0 (Alg. 1 lines 5, 18, 19)."""
    return _punishment(interval, t, _of_wrong_class)


def wrong_punishments(t: int, device: torch.device) -> Tensor:
    """Return the punishment of a wrong class in intervals 0 to t: (t + 1,)."""
    return _table(_of_wrong_class, t, device)


def _punishment(interval: Tensor, t: int, formula: Callable[[Tensor, int], Tensor]) -> Tensor:
    if t > TABLED_INTERVALS or torch.compiler.is_compiling():  # compiled code fuses the formula with its neighbours
        return formula(interval.to(widest_float(interval.device)), t)
    table = _table(formula, t, interval.device)
    if interval.shape[-1] < MANY_SAMPLES:
        return table.take(interval.long().clamp_(0, t))  # bad confidences lie outside
    index = interval.int().clamp_(0, t)  # with int32, reading is several times as quick
    return table.index_select(0, index.reshape(-1)).view(interval.shape)


@lru_cache(maxsize=64)
def _table(formula: Callable[[Tensor, int], Tensor], t: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # the table outlives the caller's mode
        return formula(torch.arange(t + 1, dtype=widest_float(device)), t).to(device)


def _of_true_class(interval: Tensor, t: int) -> Tensor:
    return -(interval.clamp(LEAST, t - 1) / (t - 1)).log()


def _of_wrong_class(interval: Tensor, t: int) -> Tensor:
    return -((t - 1 - interval).clamp(min=LEAST) / (t - 1)).log()
