"""Training batches, indexed out of data that stay on the device of the model."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

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

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Give inputs and labels of each batch of a pass; the last one may be smaller."""
        inputs, labels = self.split.inputs, self.split.labels
        for index in torch.split(_permutation(len(labels)).to(labels.device), self.batch_size):
            yield inputs.index_select(0, index), labels.index_select(0, index)


def _permutation(size: int) -> Tensor:
    """Draw the order of a pass as DataLoader and RandomSampler do, when its first batch is asked for."""
    _drawn_seed()  # of the workers, which a DataLoader draws even if it has none
    return torch.randperm(size, generator=torch.Generator().manual_seed(_drawn_seed()))


def _drawn_seed() -> int:
    return int(torch.empty((), dtype=torch.int64).random_())
