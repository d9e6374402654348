"""Intervals of confidences, and how much each interval is punished."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from mpcs_torch.functional.concern.terms import MANY_SAMPLES
from mpcs_torch.functional.inputs.dtypes import widest_float

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
