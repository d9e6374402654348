"""Computation over chunks of rows, to limit the memory for intermediate results."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

CHUNK = 2**18
"""The number of scores per chunk on the CPU."""
EVERY_ROW = slice(None)
"""The slice of all rows, used if rows are not split into chunks."""


def map_chunks(work: Callable[[slice], T], values: Tensor, *inputs: Tensor, size: int | None = None) -> list[T]:
    """Apply ``work`` to consecutive chunks of the rows of ``values`` (M, ...), and return the list of results.

    There is only one chunk in compiled code, and if an input requires gradients: autograd keeps all results anyway.

    Args:
        work: A function whose argument is the slice of rows of a chunk.
        values: (M, ...). Its number of elements per row sets the number of rows in a chunk.
        *inputs: Other tensors that ``work`` reads, which may require gradients.
        size: The number of scores per chunk on the CPU. Default: `CHUNK`.
    """
    size = 2**26 if not values.is_cpu else size or CHUNK  # small chunks underuse an accelerator
    if torch.compiler.is_compiling() or values.numel() <= size:
        return [work(EVERY_ROW)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (values, *inputs)):
        return [work(EVERY_ROW)]
    rows = len(values)
    step = max(1, size * rows // values.numel())
    return [work(slice(start, min(start + step, rows))) for start in range(0, rows, step)]


def concat_chunks(
    work: Callable[[slice], Sequence[Tensor]], values: Tensor, *, size: int | None = None
) -> list[Tensor]:
    """Apply ``work`` to chunks as in `map_chunks`, and concatenate each of the tensors that it returns."""
    chunks = map_chunks(work, values, size=size)
    return list(chunks[0]) if len(chunks) == 1 else [torch.cat(parts) for parts in zip(*chunks, strict=True)]
