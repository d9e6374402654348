"""Batches beside those of torch's own DataLoader."""

import itertools

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.trainer.data import Split, shuffled


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
@pytest.mark.parametrize("samples", [1, 30, 31])
@pytest.mark.parametrize("batch_size", [1, 10, 31, 100])
@pytest.mark.parametrize("batches", [None, 2], ids=["whole passes", "begun passes"])
def test_batches_and_random_draws_are_those_of_a_data_loader(
    seed: int, samples: int, batch_size: int, batches: int | None
) -> None:
    split = Split(torch.rand(samples, 2, 3), torch.arange(samples))
    loader = DataLoader(
        TensorDataset(split.inputs, split.labels), batch_size=batch_size, shuffle=True
    )
    torch.manual_seed(seed)
    theirs = [
        ([*itertools.islice(loader, batches)], torch.get_rng_state()) for _ in range(3)
    ]
    torch.manual_seed(seed)
    for expected, their_state in theirs:
        ours = [
            split.at(index) for index in torch.split(shuffled(split), batch_size)[:batches]
        ]
        assert torch.equal(torch.get_rng_state(), their_state)
        assert len(ours) == len(expected)
        for batch, (inputs, labels) in zip(ours, expected, strict=True):
            assert torch.equal(batch.inputs, inputs)
            assert torch.equal(batch.labels, labels)
