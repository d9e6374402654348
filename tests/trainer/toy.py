"""A run small enough for a test: three blobs, a handful of epochs; trained whole or cut off, and what it leaves."""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import pytest
import torch

from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import Hook, MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.resume import FILE


def toy_data() -> DataSplits:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 3
    inputs = torch.randn(60, 4, generator=generator) + 2 * torch.eye(3, 4)[labels]
    return DataSplits(
        Split(inputs[:45], labels[:45]),
        Split(inputs[45:], labels[45:]),
        ("red", "yellow", "green"),
    )


def toy_config(**changed: Any) -> RunConfig:
    sections = {
        "name": "toy",
        "seed": 5,
        "data": {"name": "iris"},
        "model": {"name": "mlp", "hidden": 8},
        "training": {"batch_size": 10, "learning_rate": 0.05},
        "epochs": {"count": 12},
        "score": {
            "k": 3,
            "t": 20,
            "concern": {"releases": [["red", "yellow"]], "factor": 0.1},
        },
        **changed,
    }
    return RunConfig.model_validate(sections)


def train(
    config: RunConfig, folder: Path, *hooks: Hook, **options: Any
) -> dict[str, bytes]:
    """Train on the toy data, and return what is in the folder."""
    run_in_folder(config, toy_data(), folder, hooks, **options)
    return contents(folder)


class CutOffError(Exception):
    """The end of a run that is cut off."""


def cut_off(
    config: RunConfig, folder: Path, epoch: int, *, resume: bool = False
) -> dict[str, bytes]:
    """Train until an epoch has been recorded, and return what is in the folder."""

    def raise_error(now: MeasuredEpoch, run: TrainingRun) -> None:
        if now.number == epoch:
            raise CutOffError

    with pytest.raises(CutOffError):
        train(config, folder, raise_error, resume=resume)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in each file; of the saved state its values, because pickle tells equal objects from the same."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): values_in(path) for path in files}


def values_in(path: Path) -> bytes:
    if path.name != FILE:
        return path.read_bytes()
    try:
        return repr(plain(torch.load(path, weights_only=True))).encode()
    except (RuntimeError, EOFError, UnpicklingError):
        return path.read_bytes()


def plain(state: object) -> object:
    if isinstance(state, torch.Tensor):
        return state.dtype, state.tolist()
    if isinstance(state, dict):
        return {key: plain(value) for key, value in state.items()}
    return [plain(value) for value in state] if isinstance(state, list | tuple) else state
