"""What every data set gives: training and test samples in memory, and the names of the classes."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mpcs_torch.errors import MpcsError


class DataError(MpcsError, RuntimeError):
    """A data set is not there and cannot be had."""


@dataclass(frozen=True)
class DataSplits:
    """Inputs are float32 (N, *shape), labels int64 (N,) in [0, number of classes)."""

    train_inputs: Tensor
    train_labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]

    def to(self, device: torch.device) -> "DataSplits":
        """The same samples on a device."""
        return replace(
            self,
            train_inputs=self.train_inputs.to(device),
            train_labels=self.train_labels.to(device),
            test_inputs=self.test_inputs.to(device),
            test_labels=self.test_labels.to(device),
        )
