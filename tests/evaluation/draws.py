"""Random rows for tests of evaluations."""

from collections.abc import Sequence

import torch
from torch import Tensor


def rows_of(
    number: int,
    shares: Sequence[float],
    *,
    skills: tuple[float, float] = (1.0, 2.0),
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labels (N,) of classes with these shares, and the probabilities (N, C) of two models with these skills."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.multinomial(
        torch.tensor(shares), number, replacement=True, generator=generator
    )
    noise = torch.randn(2, number, len(shares), generator=generator, dtype=torch.float64)
    right = torch.eye(len(shares), dtype=torch.float64)[target]
    first, second = skills
    return (
        target,
        (noise[0] + first * right).softmax(1),
        (noise[1] + second * right).softmax(1),
    )
