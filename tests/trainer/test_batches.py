"""Batches beside those of torch's own DataLoader."""

import itertools

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.loop import ShuffledBatches

Pass = tuple[list[tuple[Tensor, Tensor]], Tensor]
"""Batches, and the state of the global random generator after them."""


def passes(loader: ShuffledBatches | DataLoader[tuple[Tensor, ...]], seed: int, batches: int | None) -> list[Pass]:
    torch.manual_seed(seed)
    return [
        ([(inputs, labels) for inputs, labels in itertools.islice(loader, batches)], torch.get_rng_state())
        for _ in range(3)
    ]


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
@pytest.mark.parametrize("samples", [1, 30, 31])
@pytest.mark.parametrize("batch_size", [1, 10, 31, 100])
@pytest.mark.parametrize("batches", [None, 2], ids=["whole passes", "begun passes"])
def test_batches_and_random_draws_are_those_of_a_data_loader(
    seed: int, samples: int, batch_size: int, batches: int | None
) -> None:
    split = Split(torch.rand(samples, 2, 3), torch.arange(samples))
    dataset = TensorDataset(split.inputs, split.labels)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    own = ShuffledBatches(split, batch_size)
    assert len(own) == len(loader)
    theirs = passes(loader, seed, batches)
    for (ours, state), (expected, their_state) in zip(passes(own, seed, batches), theirs, strict=True):
        assert len(ours) == len(expected)
        for (inputs, labels), (their_inputs, their_labels) in zip(ours, expected, strict=True):
            assert torch.equal(inputs, their_inputs)
            assert torch.equal(labels, their_labels)
        assert torch.equal(state, their_state)
