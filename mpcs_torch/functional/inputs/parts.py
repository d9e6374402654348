"""Work on rows in parts, so that what is computed on the way takes little memory."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

PART = 2**18
"""The number of scores that are worked on at once on the CPU."""
EVERY_ROW = slice(None)
"""The rows of a part that is the whole: nothing has to be cut out."""


def of_parts(work: Callable[[slice], T], values: Tensor, *others: Tensor, most: int | None = None) -> list[T]:
    """Return what work gives for parts of the rows of values (M, ...), in their order.

    One part holds all rows where gradients are needed, whose memory parts do not save, and in compiled code.

    Args:
        work: Called with the rows of a part.
        values: (M, ...): its size decides the number of rows in a part.
        *others: Further tensors that work reads, which may have gradients.
        most: The number of scores in a part on the CPU. Default: `PART`; fewer where many results are held at once.
    """
    most = 2**26 if not values.is_cpu else most or PART  # small parts leave others idle
    if torch.compiler.is_compiling() or values.numel() <= most:
        return [work(EVERY_ROW)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (values, *others)):
        return [work(EVERY_ROW)]
    rows = len(values)
    size = max(1, most * rows // values.numel())
    return [work(slice(start, min(start + size, rows))) for start in range(0, rows, size)]


def joined_parts(work: Callable[[slice], Sequence[Tensor]], values: Tensor, *, most: int | None = None) -> list[Tensor]:
    """Return the tensors (M, ...) whose parts work gives; arguments are those of `of_parts`.

    Parts are written into place at once: kept until the end, they would lie in the memory that each part frees.
    """
    whole: list[Tensor] = []

    def put(rows: slice) -> None:
        found = work(rows)
        if rows is EVERY_ROW:
            whole.extend(found)
            return
        if not whole:
            whole.extend(part.new_empty(len(values), *part.shape[1:]) for part in found)
        for tensor, part in zip(whole, found, strict=True):
            tensor[rows] = part

    of_parts(put, values, most=most)
    return whole
