"""Logits and detection scores with known faults of calibration."""

import torch
from torch import Tensor

CLASSES = 4


def logits(seed: int, size: int = 400, *, spread: float = 3.0) -> tuple[Tensor, Tensor]:
    """Draw overconfident logits (N, C), float64, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, CLASSES, (size,), generator=generator)
    noise = torch.randn(size, CLASSES, generator=generator, dtype=torch.float64)
    return spread * (noise + 1.2 * torch.nn.functional.one_hot(target, CLASSES)), target


def trials(seed: int, size: int = 400) -> tuple[Tensor, Tensor]:
    """Draw detection scores (N,), float64, of which a quarter is of targets, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = (torch.arange(size) % 4 == 1).long()
    return 2 * torch.randn(
        size, generator=generator, dtype=torch.float64
    ) + 3 * target + 5, target


def scores_of_systems(seed: int, size: int = 400) -> tuple[Tensor, Tensor]:
    """Draw the scores of three systems (N, 3), float64, for the same trials, and labels."""
    _, target = trials(seed, size)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(size, 3, generator=generator, dtype=torch.float64)
    return torch.tensor([2.0, 1.0, 5.0]) * (
        noise + torch.tensor([1.0, 1.5, 0.5]) * target.unsqueeze(1)
    ), target
