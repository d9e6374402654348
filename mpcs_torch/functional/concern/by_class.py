"""Prediction patterns of few classes, without sorting; for many samples on a CPU in chunks that fit its cache."""

from threading import local
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.concern.terms import (
    MANY_SAMPLES,
    TABLED_INTERVALS,
    PatternScores,
    intervals_of,
    join,
    score_members,
    true_punishment,
    weight_of_classes,
    wrong_punishment,
    wrong_punishments,
)
from mpcs_torch.functional.inputs.parts import of_parts
from mpcs_torch.functional.inputs.probabilities import GivenSamples, Samples, computed_in

CPU_PART = 2**19
"""The number of scores that are worked on at once: the many operations on small parts would wait for Python."""
SOFTMAX_ERROR = 5e-6
"""More than the relative difference between float32 softmaxes over 32 classes in different orders of summation."""


class _Kept(local):
    """The memory that a thread keeps for its next call: at most 48 bytes for each score of a part."""

    def __init__(self) -> None:
        self.make(0)

    def make(self, size: int) -> None:
        with torch.inference_mode(False):  # the memory outlives the caller's mode
            self.memory = torch.empty(size, dtype=torch.uint8, device="cpu")


_kept = _Kept()


class _Room(NamedTuple):
    """Matrices (C, M) to work in, or the memory for them."""

    probs: Tensor
    interval: Tensor
    member: Tensor
    spare: Tensor
    punishment: Tensor
    weight: Tensor

    @classmethod
    def of(cls, cells: int, dtype: torch.dtype) -> "_Room":
        """Give room for a number of scores: the same memory for all calls of a thread."""
        sizes = [cells * dtype.itemsize] * 4 + [cells * 8] * 2
        if len(_kept.memory) < sum(sizes):
            _kept.make(sum(sizes))
        *matrices, punishment, weight = torch.split(_kept.memory[: sum(sizes)], sizes)
        probs, interval, member, spare = (matrix.view(dtype) for matrix in matrices)
        return cls(probs, interval, member, spare, punishment.view(torch.float64), weight.view(torch.float64))

    def of_shape(self, classes: int, size: int) -> "_Room":
        """Return matrices for a number of samples."""
        return _Room(*(matrix[: classes * size].view(classes, size) for matrix in self))


def scores_of_many(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    """Score the prediction patterns of M samples, with the concern (C, C)."""
    classes = samples.labels.num_classes

    def scores_of(rows: slice) -> PatternScores:
        given = samples.at(rows)
        size = len(given.scores)
        room = _Room.of(classes * size, computed_in(samples.scores)).of_shape(classes, size)
        return _scores_of_part(given.upcast(), room, k=k, t=t, concern=concern)

    return join(of_parts(scores_of, samples.scores, size=CPU_PART // classes))


def _scores_of_part(samples: Samples, room: _Room, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    target = samples.labels.target
    true = target.unsqueeze(0)
    if samples.scale == "logits" and samples.scores.dtype == torch.float32:
        _find_patterns_of_logits(samples.scores, room, k=k, t=t)
    else:
        room.probs.copy_(samples.probs().t())
        room.interval.copy_(room.punishment.copy_(room.probs).mul_(t).floor_())
        _find_members(room.probs, k, out=room.member, spare=room.spare)
    true_present = room.member.gather(0, true).squeeze(0).double()
    true_interval = room.interval.gather(0, true).squeeze(0)
    wrong = room.member.scatter_(0, true, 0)
    index = room.spare.view(torch.int32 if room.spare.dtype == torch.float32 else torch.int64)
    index.copy_(room.interval.mul_(wrong)).clamp_(0, t)  # interval 0 is not punished; bad confidences lie outside
    torch.index_select(wrong_punishments(t, true.device), 0, index.view(-1), out=room.punishment.view(-1))
    return score_members(
        room.punishment,
        wrong,
        None if concern is None else weight_of_classes(concern, target, true_present, out=room.weight),
        k=k,
        true_present=true_present,
        true_punishment=true_punishment(true_interval, t),
        is_bad=samples.is_bad(room.probs.t()),
    )


def _find_patterns_of_logits(logits: Tensor, room: _Room, *, k: int, t: int) -> None:
    """Take the softmax class by class, which is quick, and again row by row where the order of its sum can matter.

    That is where a confidence is so near the edge of an interval or of the pattern that rounding decides.
    """
    probs, interval, member, spare, punishment, _ = room
    torch.softmax(spare.copy_(logits.t()), dim=0, out=probs)
    torch.mul(probs, t * (1 - SOFTMAX_ERROR), out=interval).floor_()
    highest = torch.mul(probs, t * (1 + SOFTMAX_ERROR), out=spare).floor_().clamp_(max=t - 1)  # t scores as t - 1 does
    unsure = highest.sub_(interval).amax(dim=0) > 0
    if k == len(probs):
        member.fill_(1)
    else:
        least, left_out = _kth_and_next(probs, k, room=punishment.view(-1).view(probs.dtype), spare=spare)
        torch.ge(probs, least, out=member)
        unsure |= left_out >= least * (1 - SOFTMAX_ERROR)
    rows = unsure.nonzero().squeeze(1)
    if len(rows):
        exact = logits[rows].softmax(dim=1).t().contiguous()
        interval[:, rows], member[:, rows] = intervals_of(exact, t).float(), _members(exact, k, member.dtype)


def _kth_and_next(probs: Tensor, k: int, *, room: Tensor, spare: Tensor) -> tuple[Tensor, Tensor]:
    """Return the k-th highest and the next probability of each column of (C, M): (M,) each; k < C.

    They are found in a vector ``room`` of at least (k + 2) M floats and a matrix like ``probs``.
    """
    samples = probs.shape[1]
    highest = room[: (k + 2) * samples].view(k + 2, samples)  # from row 1 on, in descending order
    highest[0], highest[1], highest[2:] = 2, probs[0], 0
    for j in range(1, len(probs)):  # take one class after the other into the order
        last = min(j, k) + 2
        torch.minimum(highest[: last - 1], probs[j], out=spare[: last - 1])
        torch.maximum(highest[1:last], spare[: last - 1], out=highest[1:last])
    return highest[k], highest[k + 1]


def _find_members(probs: Tensor, k: int, *, out: Tensor, spare: Tensor) -> Tensor:
    """Write 1 for the k most probable classes of each column of (C, M), ties to the lower class, and 0 for others."""
    classes = len(probs)
    if k == classes:
        return out.fill_(1)
    # The rank of class j, from 0, is the number of earlier classes that are at least as probable, and of later ones
    # that are more probable: all later ones but those that class j is at least as probable as.
    out[0] = 0
    for j in range(1, classes):
        at_least = torch.ge(probs[:j], probs[j], out=spare[:j])
        torch.sum(at_least, dim=0, out=out[j])
        out[:j].sub_(at_least)
    later = torch.arange(classes - 1, -1, -1, dtype=out.dtype).unsqueeze(1)
    return out.lt_(k - later)


CHUNK = 2**26
"""The number of comparisons between probabilities that are made at once."""


def scores_by_class(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    """Score the prediction patterns of M samples, with the concern (C, C)."""
    if torch.compiler.is_compiling():
        return _scores(samples.upcast(), k=k, t=t, concern=concern)
    if samples.scores.is_cpu and len(samples.scores) >= MANY_SAMPLES and t <= TABLED_INTERVALS:
        return scores_of_many(samples, k=k, t=t, concern=concern)
    size = CHUNK // samples.labels.num_classes**2
    return join(
        of_parts(lambda rows: _scores(samples.at(rows).upcast(), k=k, t=t, concern=concern), samples.scores, size=size)
    )


def _scores(samples: Samples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    probs, target = samples.probs().t(), samples.labels.target
    true = target.unsqueeze(0)
    interval = intervals_of(probs, t)
    member = _members(probs, k, interval.dtype)
    true_present = member.gather(0, true).squeeze(0)
    wrong = member.scatter_(0, true, 0)
    return score_members(
        wrong_punishment(interval * wrong, t),  # interval 0 is not punished
        wrong,
        None if concern is None else weight_of_classes(concern, target, true_present),
        k=k,
        true_present=true_present,
        true_punishment=true_punishment(interval.gather(0, true).squeeze(0), t),
        is_bad=samples.is_bad(probs.t()),
    )


def _members(probs: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """Return 1 for the k most probable classes of each column, ties to the lower class, and 0 for others: (C, M)."""
    classes = len(probs)
    if k == classes:
        return torch.ones_like(probs, dtype=dtype)
    if probs.is_cpu and not torch.compiler.is_compiling():  # one call, where comparing takes many
        order = probs.sort(dim=0, descending=True, stable=True).indices
        return torch.zeros_like(probs, dtype=dtype).scatter_(0, order[:k], 1)
    at_least = probs.unsqueeze(1) >= probs.unsqueeze(0)  # [i, j]: class i is at least as probable as class j
    earlier = torch.ones(classes, classes, dtype=torch.bool, device=probs.device).triu(1).unsqueeze(2)
    comes_first = torch.where(earlier, at_least, ~at_least.transpose(0, 1))
    return (comes_first.sum(dim=0) < k).to(dtype)
