"""ADD, the authors' trajectories of an autonomous driving simulator."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.trainer.data.splits import DataError, DataSplits, Split


def load_add(root: Path) -> DataSplits:
    """Load ADD: (N, 40, 2) positions in [0, 1], 2400 training and 600 test trajectories of 3 classes.

    Raises:
        DataError: If one of the four files of ``root/ADD`` is missing or no array.
    """
    folder = root / "ADD"
    train, test = (
        Split(_array(folder / f"X_{name}.npy").float(), _array(folder / f"Y_{name}.npy").flatten().long())
        for name in ("train", "test")
    )
    return DataSplits(train, test, tuple(map(str, range(3))))


def _array(path: Path) -> Tensor:
    try:
        return torch.from_numpy(np.load(path, allow_pickle=False))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as an array: {error} (mpcs data get add downloads it)") from None
