"""What every data set gives: training and test samples in memory, and the names of the classes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor


class DataError(RuntimeError):
    """A data set is not there and cannot be had."""


@dataclass(frozen=True)
class DataRequest:
    """What a loader may need to know."""

    root: Path
    """Folder for files; MNIST lies in ``root/MNIST/raw``."""
    test_fraction: float
    split_seed: int


@dataclass(frozen=True)
class DataSplits:
    """Inputs are float32 (N, *shape), labels int64 (N,) in [0, number of classes)."""

    train_inputs: Tensor
    train_labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]


Loader = Callable[[DataRequest], DataSplits]
