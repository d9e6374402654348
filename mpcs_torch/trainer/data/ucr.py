"""Univariate sets of the UCR time-series archive."""

from pathlib import Path

import torch

from mpcs_torch.trainer.data.splits import DataSplits, Split
from mpcs_torch.trainer.sources.ucr_files import Part, read_ucr


def load_ucr(root: Path, *, set: str) -> DataSplits:  # noqa: A002  # a key of the config
    """Load a set by its name in the archive: (N, steps, 1), unscaled; labels sorted and numbered from 0.

    Raises:
        DataError: As `read_ucr`.
    """
    data = read_ucr(root, set)
    return DataSplits(_split(data.train), _split(data.test), data.class_names)


def _split(part: Part) -> Split:
    return Split(torch.from_numpy(part.inputs), torch.from_numpy(part.labels))
