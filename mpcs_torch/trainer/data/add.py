"""ADD, the authors' trajectories of an autonomous driving simulator."""

from pathlib import Path

import numpy as np
import torch

from mpcs_torch.errors import DataError, printable
from mpcs_torch.trainer.data.splits import DataSplits, Split


def load_add(root: Path) -> DataSplits:
    """Load ADD: (N, 40, 2) positions in [0, 1], 2400 training and 600 test trajectories of 3 classes.

    Raises:
        DataError: If one of the four files of ``root/ADD`` is missing, or holds no array of numbers.
    """
    train, test = (_split(root / "ADD", name) for name in ("train", "test"))
    return DataSplits(train, test, ("0", "1", "2"))


def _split(folder: Path, name: str) -> Split:
    try:
        inputs, labels = (torch.from_numpy(np.load(folder / f"{kind}_{name}.npy")) for kind in ("X", "Y"))
        return Split(inputs.float(), labels.flatten().long())
    except Exception as error:  # numpy parses headers as code, which raises many kinds
        place = f"{printable(str(folder))}: X_{name}.npy and Y_{name}.npy"
        raise DataError(f"{place} cannot be read as arrays: {error} (mpcs data get add downloads them)") from None
