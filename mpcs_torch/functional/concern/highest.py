"""The highest probabilities of each row, equal ones in the order of their classes, without sorting."""

import torch
from torch import Tensor

MOST_ROUNDS = 16
"""Up to this k, taking the maximum k times is quicker than sorting."""
LABEL_BITS = 29
"""The bits that the mantissa of a float64 has beyond that of a float32."""


def most_probable(probs: Tensor, k: int, *, keys: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the k highest probabilities of each row, and their classes; of equal ones the lower class comes first.

    Args:
        probs: (M, C) without -0.0, which equals 0.0 but has other bits.
        k: At most C.
        keys: Memory from `key_room` for at least M samples.

    Returns:
        Probabilities (k, M), in descending order, and classes (k, M), int64. In a row with NaN a class may be too high.
    """
    samples, classes = probs.shape
    if probs.dtype != torch.float32 or probs.device.type == "mps" or k > MOST_ROUNDS:
        highest, label = probs.sort(dim=1, descending=True, stable=True)
        return highest[:, :k].t(), label[:, :k].t()
    last, _ = _sizes(classes)
    keys = key_room(samples, classes, probs.device) if keys is None else keys[:samples]
    # A key is the float64 of a probability, whose lowest bits, 0 in that of a float32, hold the complement of the
    # class. So keys are all different, in the order of the probabilities, and among equal ones in that of the classes.
    keys.view(torch.float64)[:, :classes].copy_(probs)
    keys[:, :classes] += torch.arange(last, last - classes, -1, device=probs.device)
    keys[:, classes:] = 0
    highest = torch.stack(_take_highest(keys, k, classes))
    return (highest >> LABEL_BITS << LABEL_BITS).view(torch.float64), ~highest & last


def key_room(samples: int, classes: int, device: torch.device) -> Tensor:
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
