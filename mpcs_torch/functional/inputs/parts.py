"""Work on rows in parts, so that what is computed on the way takes little memory."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

PART = 2**18
"""The number of scores that are worked on at once on the CPU."""
OTHER_PART = 2**26
"""That on other devices, which small parts would leave idle."""


def of_parts(work: Callable[[slice], T], values: Tensor, *others: Tensor) -> list[T]:
    """Return what work gives for parts of the rows of values (M, ...), in their order.

    One part holds all rows where gradients are needed, whose memory parts do not save, and in compiled code.

    Args:
        work: Called with the rows of a part.
        values: (M, ...): its size decides the number of rows in a part.
        *others: Further tensors that work reads, which may have gradients.
    """
    rows = len(values)
    size = max(1, (PART if values.is_cpu else OTHER_PART) * rows // max(1, values.numel()))
    needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (values, *others))
    if rows <= size or needs_grad or torch.compiler.is_compiling():
        return [work(slice(0, rows))]
    return [work(slice(start, min(start + size, rows))) for start in range(0, rows, size)]
