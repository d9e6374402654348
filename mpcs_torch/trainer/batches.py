"""Training batches, indexed out of data that stay on the device of the model."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.trainer.data import Split


@dataclass(frozen=True)
class ShuffledBatches:
    """The batches of a split in random order; each iteration is a pass over the split in an order of its own.

    Order and draws from the global random generator are those of ``DataLoader(TensorDataset(...), batch_size,
    shuffle=True)``, by which published runs replay. A DataLoader fetches and stacks the samples of a batch one by one;
    here one call picks all of them.
    """

    split: Split
    batch_size: int
    world: World = ALONE

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the batches of a new pass."""
        yield from self.of(self.draw())

    def draw(self) -> Tensor:
        """Draw the order of a pass, the same in all processes: int64 (N,)."""
        size, device = len(self.split.labels), self.split.labels.device
        order = torch.empty(size, dtype=torch.int64)
        if self.world.is_first:  # drawn as DataLoader and RandomSampler do, when its first batch is asked for
            _drawn_seed()  # of the workers, which a DataLoader draws even if it has none
            order = torch.randperm(size, generator=torch.Generator().manual_seed(_drawn_seed()))
        order = order.to(device)
        self.world.copy_from_first([order])
        return order

    def of(self, order: Tensor, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Give inputs and labels of each batch in an order, from a number on; the last batch may be smaller."""
        inputs, labels = self.split.inputs, self.split.labels
        for index in torch.split(order, self.batch_size)[start:]:
            yield inputs.index_select(0, index), labels.index_select(0, index)


def _drawn_seed() -> int:
    return int(torch.empty((), dtype=torch.int64).random_())
