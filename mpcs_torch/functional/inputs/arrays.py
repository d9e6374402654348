"""Conversion of NumPy arrays and concern specs to tensors, and computation over chunks of rows."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError


class ConcernLike(Protocol):
    """The members of `mpcs_torch.ConcernSpec` (the costs of errors) that `mpcs_torch.functional` uses.

    C is the number of classes, and A the number of coarse answers (decisions for a group of classes).
    """

    @property
    def concession(self) -> float | None:
        """The maximum distance of a confidence from 0 or 1 that MPCS does not penalize; None for its default."""

    def mpcs_weights(self) -> Tensor:
        """Return the weight of mistaking the true class (row) for another class (column): (C, C)."""

    def compact_matrix(self) -> Tensor:
        """Return the weights (C, C) of `mpcs_weights`, as a sparse tensor if there are many classes."""

    def costs(self) -> Tensor:
        """Return the cost of each decision (column) by true class (row): (C, C), or (C, C + A + 1) with referral."""

    def dangerous_pairs(self) -> Tensor:
        """Return whether mistaking the true class (row) for another class (column) is dangerous: (C, C), bool."""

    def over_answers(self, pairs: Tensor) -> Tensor:
        """Append a column for each coarse answer to ``pairs`` (C, C) of true and predicted classes: (C, C + A)."""


def as_tensor(values: Any, name: str) -> Tensor:
    """Return ``values`` as a tensor: a tensor unchanged, and an array or a list of numbers on the CPU."""
    if isinstance(values, Tensor):
        return values
    try:
        array = np.asarray(values)
        # torch cannot wrap a read-only array or one with negative strides.
        if not array.flags.writeable or not array.flags.c_contiguous:
            array = array.copy()
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        raise InvalidValueError("numbers", name, values) from None


def as_tensors(
    preds: Any, target: Any, sample_weight: Any = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Convert predictions, labels and optional sample weights to tensors."""
    weight = None if sample_weight is None else as_tensor(sample_weight, "sample_weight")
    return as_tensor(preds, "preds"), as_tensor(target, "target"), weight


def by_class(values: Tensor, classes: int) -> Tensor:
    """Reshape (N, C, ...) or (C,) to (M, C)."""
    if values.ndim == 2:
        return values
    place = min(1, values.ndim - 1)  # the dimension of the classes
    return values.movedim(place, -1).reshape(-1, classes)


Columns = TypeVar("Columns", bound=tuple[Any, ...])


def at_rows(columns: Columns, rows: slice | Tensor) -> Columns:
    """Return the NamedTuple ``columns`` with only some rows of its tensors; its other fields stay as they are."""
    fields = [column[rows] if isinstance(column, Tensor) else column for column in columns]
    return type(columns)(*fields)


def detached(values: Any, name: str = "preds") -> Tensor:
    """Convert ``values`` to a tensor, and detach it from the gradient."""
    return as_tensor(values, name).detach()


def is_spec(concern: object) -> TypeGuard[ConcernLike]:
    """Return whether ``concern`` has the methods of a `ConcernSpec`, without importing that class."""
    return hasattr(concern, "dangerous_pairs")


def concern_weights(concern: Tensor | ConcernLike, *, compact: bool = False) -> Tensor:
    """Return the matrix of weights of a spec (if ``compact``, sparse for many classes); return a tensor unchanged."""
    if is_spec(concern):
        return concern.compact_matrix() if compact else concern.mpcs_weights()
    return _concern_tensor(concern)


def concern_costs(concern: Tensor | ConcernLike) -> Tensor:
    """Return the cost matrix of a spec; return a tensor unchanged."""
    return concern.costs() if is_spec(concern) else _concern_tensor(concern)


def concern_pairs(concern: Tensor | ConcernLike) -> Tensor:
    """Return the bool matrix of dangerous pairs of classes of a spec; return a tensor unchanged."""
    return concern.dangerous_pairs() if is_spec(concern) else _concern_tensor(concern)


def _concern_tensor(concern: Any) -> Tensor:
    is_array = isinstance(concern, Tensor | list) or hasattr(concern, "__array__")
    if not is_array:
        raise InvalidValueError("spec_or_tensor", "concern", concern)
    return as_tensor(concern, "concern")


T = TypeVar("T")

CHUNK = 2**18
"""The number of scores per chunk on the CPU."""
EVERY_ROW = slice(None)
"""The slice of all rows, for work that is not split into chunks."""


def map_chunks(work: Callable[[slice], T], values: Tensor, *inputs: Tensor) -> list[T]:
    """Apply ``work`` to consecutive slices of the rows of ``values`` (M, ...), and return the list of results.

    On the CPU, the rows of a slice have about `CHUNK` elements. All rows are one slice if the code
    is compiled, or if ``values`` or ``inputs`` require gradients, because autograd then keeps all results anyway.
    """
    size = CHUNK if values.is_cpu else 2**26  # small chunks underuse an accelerator
    if torch.compiler.is_compiling() or values.numel() <= size:
        return [work(EVERY_ROW)]
    if torch.is_grad_enabled() and any(
        tensor.requires_grad for tensor in (values, *inputs)
    ):
        return [work(EVERY_ROW)]
    rows = len(values)
    step = max(1, size * rows // values.numel())
    return [work(slice(start, min(start + step, rows))) for start in range(0, rows, step)]


def concat_chunks(
    work: Callable[[slice], Sequence[Tensor]], values: Tensor
) -> list[Tensor]:
    """Apply ``work`` to slices of rows as `map_chunks` does; concatenate each of its output tensors over the slices."""
    chunks = map_chunks(work, values)
    if len(chunks) == 1:
        return list(chunks[0])
    return [torch.cat(parts) for parts in zip(*chunks, strict=True)]
