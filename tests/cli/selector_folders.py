"""Folders as a training loop with a `CheckpointSelector` leaves them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mpcs_torch.learning import CheckpointSelector, SelectionRule

RULE = SelectionRule(
    "missed", {"missed": "min", "accuracy": "max"}, within={"accuracy": 0.01}
)
EPOCHS = [
    {"missed": 9.0, "accuracy": 0.95, "loss": 0.5},
    {"missed": 5.0, "accuracy": 0.955, "loss": 0.4, "slow": 1.5},
    {"missed": 3.0, "accuracy": 0.90, "loss": 0.3},
]
"""By `RULE`, epoch 1 is the best: epoch 2 misses fewer, but is more than 0.01 below the best accuracy."""


def train(
    folder: Path,
    epochs: Sequence[Mapping[str, float]] = EPOCHS,
    rule: SelectionRule = RULE,
    **settings: Any,
) -> CheckpointSelector:
    """Record ``epochs`` in ``folder``."""
    selector = CheckpointSelector(folder, rule, **settings)
    for number, values in enumerate(epochs):
        selector.update({"epoch": torch.tensor(number)}, epoch=number, **values)
    return selector


def train_seeds(
    parent: Path, picks: Sequence[float], name: str = "seed", rule: SelectionRule = RULE
) -> list[Path]:
    """Record a folder for each seed, whose picked epoch has the number of missed errors in ``picks``."""
    folders = [parent / f"{name}-{seed}" for seed in range(len(picks))]
    for folder, missed in zip(folders, picks, strict=True):
        train(folder, [EPOCHS[0], {**EPOCHS[1], "missed": missed}, EPOCHS[2]], rule)
    return folders
