"""Prediction patterns of many classes: the most probable classes of each row of (M, C)."""

import torch
from torch import Tensor

from mpcs_torch.functional.concern.terms import (
    PatternScores,
    intervals_of,
    join,
    score_members,
    true_punishment,
    wrong_punishment,
)
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.parts import of_parts
from mpcs_torch.functional.inputs.probabilities import GivenSamples, Samples

MOST_ROUNDS = 16
"""Up to this k, taking the maximum k times is quicker than sorting."""
LABEL_BITS = 29
"""The bits that the mantissa of a float64 has beyond that of a float32."""
COLUMNS = 32
"""Of the grid that a row is laid out in: a few vector registers."""


def most_probable(probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest probabilities of each row, and their classes; of equal ones the lower class comes first.

    Args:
        probs: (M, C) without -0.0, which equals 0.0 but has other bits.
        k: At most C.

    Returns:
        Probabilities (k, M), in descending order, and classes (k, M), int64. In a row with NaN a class may be too high.
    """
    samples, classes = probs.shape
    if not probs.is_cpu or probs.dtype != torch.float32 or k > MOST_ROUNDS or classes < 4 * COLUMNS:
        return _most_probable_in_order(probs, k)
    # In a grid of a row, the k highest lie in the k columns with the highest maxima; only these are looked at closely.
    rows, in_grid = classes // COLUMNS, classes - classes % COLUMNS
    grid = probs[:, :in_grid].view(samples, rows, COLUMNS)
    of_columns = _nearly_highest(grid.amax(dim=1), k)
    # In ascending order, so that what is chosen keeps the order of the classes.
    columns = (~of_columns[:, :k] & (COLUMNS - 1)).sort(dim=1).values
    chosen = grid.gather(2, columns.long().unsqueeze(1).expand(samples, rows, k)).flatten(1)
    candidates = torch.cat([chosen, probs[:, in_grid:]], dim=1)
    found, last = _nearly_highest(candidates, k + 1), _low_bits(candidates.shape[1])
    place = ~found[:, : k + 1] & last
    highest = candidates.gather(1, place.long())
    place = place[:, :k]
    in_columns = place // k * COLUMNS + columns.gather(1, (place % k).long())
    label = torch.where(place < rows * k, in_columns, place + (in_grid - rows * k)).long().t()
    # Numbers that differ in their lowest bits alone may be in the wrong order, and the pattern may need one left out.
    alike = (found[:, 1:] ^ found[:, :-1]) <= last
    unsure = (alike[:, :k] & (highest[:, 1:] != highest[:, :-1])).any(dim=1) | (alike[:, k - 1] & alike[:, k])
    unsure |= of_columns[:, k] | (COLUMNS - 1) >= found[:, k - 1] & ~last
    rows_unsure = unsure.nonzero().squeeze(1)
    highest = highest[:, :k].t().double()
    if len(rows_unsure):
        highest[:, rows_unsure], label[:, rows_unsure] = _most_probable_in_order(probs[rows_unsure], k)
    return highest, label


def _nearly_highest(values: Tensor, number: int) -> Tensor:
    """Return the highest numbers of each row, and one more, their lowest bits replaced by those of ~place.

    Values (M, K) are float32 and not negative, with more than that number of columns. The result is int32.
    """
    last = _low_bits(values.shape[1])
    places = torch.arange(last, last - values.shape[1], -1, dtype=torch.int32)
    keys = values.view(torch.int32) & (2**31 - 1 - last) | places
    found = keys.new_empty(len(keys), number + 1)
    for taken in range(number):
        highest = torch.amax(keys, dim=1, keepdim=True, out=found[:, taken : taken + 1])
        keys.scatter_(1, (~highest & last).long(), -1)
    torch.amax(keys, dim=1, out=found[:, number])
    return found


def _low_bits(columns: int) -> int:
    """Return a number whose lowest bits, all 1, can hold the place of a column."""
    return int(2 ** (columns - 1).bit_length() - 1)


def _most_probable_in_order(probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return what `most_probable` does, by looking at all classes alike."""
    samples, classes = probs.shape
    if probs.dtype != torch.float32 or probs.device.type == "mps" or k > MOST_ROUNDS:
        highest, label = probs.sort(dim=1, descending=True, stable=True)
        return highest[:, :k].t(), label[:, :k].t()
    last, _ = _sizes(classes)
    keys = _key_room(samples, classes, probs.device)
    # A key is the float64 of a probability, whose lowest bits, 0 in that of a float32, hold the complement of the
    # class. So keys are all different, in the order of the probabilities, and among equal ones in that of the classes.
    keys.view(torch.float64)[:, :classes].copy_(probs)
    keys[:, :classes] += torch.arange(last, last - classes, -1, device=probs.device)
    keys[:, classes:] = 0
    highest = torch.stack(_take_highest(keys, k, classes))
    return (highest >> LABEL_BITS << LABEL_BITS).view(torch.float64), ~highest & last


def _key_room(samples: int, classes: int, device: torch.device) -> Tensor:
    """Return memory for the keys of samples, with at least one place more than classes: int64."""
    _, columns = _sizes(classes)
    return torch.empty(samples, (classes // columns + 1) * columns, dtype=torch.int64, device=device)


def _sizes(classes: int) -> tuple[int, int]:
    """Return the bits of a class, all 1, and the number of columns that the classes of a row are laid out in."""
    bits = classes.bit_length()
    return 2**bits - 1, 2 ** (bits // 2 + 2)


def _take_highest(keys: Tensor, k: int, classes: int) -> list[Tensor]:
    """Return the k highest keys of each row, and put 0 in their places."""
    last, columns = _sizes(classes)
    # The highest key of a row is that of the highest keys of its columns; taking it changes that of one column.
    grid = keys.view(len(keys), -1, columns)
    of_column = grid.amax(dim=1)
    found = [of_column.amax(dim=1)]
    for _ in range(k - 1):
        label = (~found[-1]).bitwise_and_(last).unsqueeze(1)
        column = label & (columns - 1)
        keys.scatter_(1, label.clamp_(max=keys.shape[1] - 1), 0)
        rest = grid.gather(2, column.unsqueeze(1).expand(-1, grid.shape[1], -1)).amax(dim=1)
        of_column.scatter_(1, column, rest)
        found.append(of_column.amax(dim=1))
    return found


CPU_PART = 2**21
"""The number of scores that are worked on at once: the many operations on small parts would wait for Python."""


def scores_by_row(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    """Score the prediction patterns of M samples, with the concern (C, C), which may be sparse."""
    size = max(1, CPU_PART // samples.labels.num_classes) if samples.scores.is_cpu else None
    return join(
        of_parts(lambda rows: _scores(samples.at(rows).upcast(), k=k, t=t, concern=concern), samples.scores, size=size)
    )


def _scores(samples: Samples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    target = samples.labels.target
    # In probabilities, -0.0 becomes 0.0.
    probs = samples.scores + 0.0 if samples.scale == "probs" else samples.scores.softmax(dim=1)
    confidence, label = most_probable(probs, k)
    wrong = (label != target).to(widest_float(target.device))
    true_present = k - wrong.sum(dim=0)
    weight = None
    if concern is not None:
        weight = weight_of_pairs(concern, target, label.clamp(max=concern.shape[1] - 1))
        weight = weight.mul_(true_present).add_(1 - true_present)  # ten times as quick as a mask
    return score_members(
        wrong_punishment(intervals_of(confidence, t) * wrong, t),  # interval 0 is not punished
        wrong,
        weight,
        k=k,
        true_present=true_present,
        true_punishment=true_punishment(intervals_of(samples.of_true_class(probs), t), t),
        is_bad=samples.is_bad(probs),
    )


def weight_of_pairs(concern: Tensor, true: Tensor, predicted: Tensor) -> Tensor:
    """Look up the weights of pairs of classes in a concern (C, C); what a sparse one does not hold is 1."""
    if concern.layout == torch.strided:
        return concern.flatten().take(true * concern.shape[1] + predicted)  # quicker than two indices
    if not len(concern.values()):
        return torch.ones_like(predicted, dtype=concern.dtype)
    rows, columns = concern.indices()
    keys, wanted = rows * concern.shape[1] + columns, true * concern.shape[1] + predicted
    place = torch.searchsorted(keys, wanted.contiguous()).clamp_(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, concern.values()[place], 1)
