"""ADD, the authors' trajectories of an autonomous driving simulator."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import DataError, printable, quoted
from mpcs_torch.io.untrusted_files import check_regular
from mpcs_torch.trainer.data.splits import DataSplits, Split

SHAPE, CLASSES = (40, 2), 3
"""Of a trajectory: positions at 40 times; the classes of trajectories."""


def load_add(root: Path) -> DataSplits:
    """Load ADD: (N, 40, 2) positions in [0, 1], 2400 training and 600 test trajectories of 3 classes.

    Raises:
        DataError: If one of the four files of ``root/ADD`` is missing, or does not hold such an array.
    """
    train, test = (_split(root / "ADD", name) for name in ("train", "test"))
    return DataSplits(train, test, tuple(map(str, range(CLASSES))))


def _split(folder: Path, name: str) -> Split:
    inputs, labels = _array(folder / f"X_{name}.npy").float(), _array(folder / f"Y_{name}.npy").flatten()
    if inputs.ndim != 3 or not len(inputs) or inputs.shape[1:] != SHAPE or not inputs.isfinite().all():
        raise _error(folder / f"X_{name}.npy", f"must hold finite numbers (N, 40, 2), but has {tuple(inputs.shape)}")
    if len(labels) != len(inputs) or not torch.isin(labels, torch.arange(CLASSES)).all():
        rule = f"must hold {len(inputs)} labels from 0 to {CLASSES - 1}"
        raise _error(folder / f"Y_{name}.npy", f"{rule}, but holds {quoted(labels.tolist())}")
    return Split(inputs, labels.long())


def _array(path: Path) -> Tensor:
    try:
        check_regular(path)
        return torch.from_numpy(np.load(path, mmap_mode="r").astype(np.float64))
    except Exception as error:  # numpy's parser raises many kinds
        raise _error(path, str(error).partition("\n")[0] or type(error).__name__) from None


def _error(path: Path, problem: str) -> DataError:
    return DataError(f"{printable(str(path))} cannot be read as an array: {problem} (mpcs data get add downloads it)")
