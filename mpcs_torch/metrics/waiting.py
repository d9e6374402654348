"""Small batches that wait, so that one call of a metric's kernel serves many of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

MOST_BATCHES = 512
"""The number of batches that wait at most."""
MOST_NUMBERS = 2**16
"""The numbers in them, at most; a batch of a quarter of these is worth a call of its own."""

Kind = tuple[object, ...]
"""The names, dtypes, devices and shapes but for rows of arguments: the same for batches that can be joined."""


class Batch(NamedTuple):
    """One batch: the arguments of ``update``."""

    number: int
    """Of the update, from 1."""
    values: tuple[Any, ...]
    """Positional arguments, and then those by name."""


class WaitingBatches:
    """Copies of batches of one kind. The first batch of a kind never waits, so that what is wrong with it is told."""

    def __init__(self) -> None:
        self.kind: Kind | None = None
        """Of the last batch."""
        self.names: tuple[str, ...] = ()
        """Of the arguments that are given by name, the last ones."""
        self.batches: list[Batch] = []
        self.numbers = 0
        """In all batches."""

    def hold(self, values: Sequence[Any], names: tuple[str, ...], number: int) -> bool:
        """Copy a batch if it is small and of the kind of the last one; tell whether it waits."""
        kind: list[object] = [names]
        rows, numbers = 0, 0
        last, self.kind = self.kind, None
        for value in values:
            if value is None:
                kind.append(None)
                continue
            if type(value) is not Tensor or not value.dim():  # a fake tensor, an array, a number
                return False
            shape = value.shape
            if rows and shape[0] != rows:
                return False
            rows, numbers = shape[0], numbers + value.numel()
            kind += (value.dtype, value.device, shape[1:])
        self.kind = tuple(kind)
        is_transformed = torch._C._functorch.peek_interpreter_stack() is not None
        if self.kind != last or not rows or 4 * numbers > MOST_NUMBERS or is_transformed:
            return False
        self.names = names
        self.batches.append(
            Batch(number, tuple([None if value is None else value.detach().clone() for value in values]))
        )
        self.numbers += numbers
        return True

    def forget_kind(self) -> None:
        """Let the next batch not wait."""
        self.kind = None

    @property
    def is_full(self) -> bool:
        """Whether no further batch should wait."""
        return len(self.batches) >= MOST_BATCHES or self.numbers >= MOST_NUMBERS

    def apply(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Apply a function to all tensors, as that of a module's move to another device."""
        self.batches = [
            Batch(number, tuple(None if value is None else fn(value) for value in values))
            for number, values in self.batches
        ]

    def put_back(self, batches: Sequence[Batch]) -> None:
        """Hold batches that were taken."""
        self.batches = list(batches)
        self.numbers = sum(value.numel() for batch in batches for value in batch.values if value is not None)

    def take(self) -> list[Batch]:
        """Return the batches, and hold none."""
        batches, self.batches, self.numbers = self.batches, [], 0
        return batches


def joined(batches: Sequence[Batch]) -> tuple[Any, ...]:
    """Return the arguments of batches of one kind as those of one batch."""
    if len(batches) == 1:
        return batches[0].values
    columns = zip(*(batch.values for batch in batches), strict=True)
    return tuple(None if column[0] is None else torch.cat(column) for column in columns)
