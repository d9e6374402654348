"""The samples of a data set, split for training, validation and test."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import MpcsError


class DataError(MpcsError, RuntimeError):
    """A data set is missing, broken, or cannot be split as asked."""


class Split(NamedTuple):
    """Labelled samples in memory."""

    inputs: Tensor
    """(N, *shape), float32."""
    labels: Tensor
    """(N,), int64 in [0, C)."""
    groups: Tensor | None = None
    """(N,), int64: the patient, speaker or recording of each sample. Samples of one group are never separated."""

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Split":
        """Return the same samples on a device, with inputs of a dtype (default: their own)."""
        groups = None if self.groups is None else self.groups.to(device)
        return Split(
            self.inputs.to(device, dtype if self.inputs.is_floating_point() else None), self.labels.to(device), groups
        )

    def at(self, index: Tensor) -> "Split":
        """Return the samples at some indices."""
        groups = None if self.groups is None else self.groups.index_select(0, index)
        return Split(self.inputs.index_select(0, index), self.labels.index_select(0, index), groups)


@dataclass(frozen=True)
class DataSplits:
    """A data set: models learn from ``train``, are chosen on ``validation`` and are judged on ``test``."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    validation: Split | None = None

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "DataSplits":
        """Return the same samples on a device, with inputs of a dtype (default: their own)."""
        validation = None if self.validation is None else self.validation.to(device, dtype)
        train, test = self.train.to(device, dtype), self.test.to(device, dtype)
        return replace(self, train=train, test=test, validation=validation)
