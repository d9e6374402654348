"""Random batches for the metrics of classifiers, and how metrics refuse bad ones."""

from dataclasses import replace

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.probabilities import Samples, flatten_samples
from tests.metrics.case import Batch, Batches
from tests.refused import Refused

CLASSES = 4


def random_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return (
        2 * torch.randn(size, CLASSES, generator=generator),
        torch.randint(0, CLASSES, (size,), generator=generator),
    )


def wide_batch(size: int, seed: int) -> Batch:
    """Draw the logits of `random_batch` as float64."""
    logits, target = random_batch(size, seed)
    return logits.double(), target


def probability_batch(size: int, seed: int) -> Batch:
    logits, target = random_batch(size, seed)
    return logits.softmax(1), target


def soft_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, size, CLASSES, generator=generator)
    return logits[0].softmax(dim=1), logits[1].softmax(dim=1)


def flat(logits: Tensor, target: Tensor) -> Samples:
    return flatten_samples(
        logits,
        target,
        num_classes=CLASSES,
        scale="logits",
        ignore_index=None,
        sample_weight=None,
    )


HARD = Batches(
    draw=random_batch,
    bad=(torch.zeros(2, CLASSES), torch.tensor([0, CLASSES])),
    refusal=Refused("class_indices", "target", 4, sample=1, last=3),
    ignoring={"ignore_index": -1},
    ignored=(torch.zeros(2, CLASSES), torch.tensor([-1, -1])),
)
WIDE = replace(HARD, draw=wide_batch)
PROBABILITIES = replace(
    HARD,
    draw=probability_batch,
    bad=(torch.full((2, CLASSES), 1 / CLASSES), torch.tensor([0, CLASSES])),
)
SOFT = Batches(
    draw=soft_batch,
    bad=(
        torch.full((2, CLASSES), 0.5),
        torch.tensor([[1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]),
    ),
    refusal=Refused("degrees", "target", [2, 0, 0, 0], sample=1),
    ignoring={},
    ignored=(
        torch.zeros(2, CLASSES),
        torch.zeros(2, CLASSES),
        None,
        torch.ones(2, CLASSES, dtype=torch.bool),
    ),
)

# Class 0 is true, predicted and certain.
CERTAIN = (torch.tensor([[9.0, -9.0, 0.0, 1.0]]), torch.tensor([0]))
