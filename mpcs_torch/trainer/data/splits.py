"""The samples of a data set, split for training, validation and test."""

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

import torch
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from torch import Tensor

from mpcs_torch.errors import DataError


class Split(NamedTuple):
    """Labelled samples in memory."""

    inputs: Tensor
    """The inputs of the samples, (N, *shape), float32."""
    labels: Tensor
    """The true class of each sample, (N,), int64 in [0, C)."""
    groups: Tensor | None = None
    """The patient, speaker or recording of each sample, (N,), int64. Groups are never split."""

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Split":
        """Move the samples to ``device``, and convert floating-point inputs to ``dtype``, if given."""
        groups = None if self.groups is None else self.groups.to(device)
        inputs = self.inputs.to(device, dtype if self.inputs.is_floating_point() else None)
        return Split(inputs, self.labels.to(device), groups)

    def at(self, index: Tensor) -> "Split":
        """Select samples by index."""
        groups = None if self.groups is None else self.groups.index_select(0, index)
        return Split(self.inputs.index_select(0, index), self.labels.index_select(0, index), groups)


@dataclass(frozen=True)
class DataSplits:
    """A data set: samples to train on, to choose models by, and to test."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    validation: Split | None = None

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "DataSplits":
        """Move all samples to ``device``, and convert floating-point inputs to ``dtype``, if given."""
        validation = None if self.validation is None else self.validation.to(device, dtype)
        train, test = self.train.to(device, dtype), self.test.to(device, dtype)
        return replace(self, train=train, test=test, validation=validation)


def check_splits(data: DataSplits, source: str) -> None:
    """Validate the return value of a loader; raise a `DataError` that names the source and the invalid array."""
    classes = len(data.class_names)
    for name, split in (("train", data.train), ("test", data.test), ("validation", data.validation)):
        if split is None and name == "validation":
            continue
        if not isinstance(split, Split):
            raise DataError(f"{source}: {name} must be a Split, but is {type(split).__name__}")
        inputs, labels, groups = split
        ends = (int(labels.min()), int(labels.max())) if _is_column(labels) and labels.numel() else (-1, -1)
        if not 0 <= ends[0] <= ends[1] < classes:
            array, rule = "labels", f"int64 (N,) from 0 to {classes - 1}"
        elif not isinstance(inputs, Tensor) or inputs.shape[:1] != labels.shape:
            array, rule = "inputs", f"(N, ...) with N = {len(labels)}, as labels"
        elif groups is not None and not (_is_column(groups) and groups.shape == labels.shape):
            array, rule = "groups", f"int64 (N,) with N = {len(labels)}, as labels"
        else:
            continue
        values = getattr(split, array)
        seen = f"{values.dtype} {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        between = f" from {ends[0]} to {ends[1]}" if array == "labels" and _is_column(values) and len(values) else ""
        raise DataError(f"{source}: {name}.{array} must be {rule}, but is {seen}{between}")


def _is_column(values: object) -> TypeGuard[Tensor]:
    return isinstance(values, Tensor) and values.dtype == torch.int64 and values.ndim == 1


def hold_out_validation(data: DataSplits, fraction: float, seed: int) -> DataSplits:
    """Move a fraction of the training samples to the validation split, stratified by class.

    With groups (`Split.groups`), whole groups are moved, and fraction and stratification are approximate.

    Args:
        data: A data set without a validation split.
        fraction: The share of the training samples to move, in (0, 1); with groups at most 1/2.
        seed: The seed of the split; the global random generators are not touched.

    Raises:
        DataError: If the data set has a validation split, or cannot be split.
    """
    if data.validation is not None:
        raise DataError("data.validation_fraction must not be set: this data set has a validation split of its own")
    labels, groups = data.train.labels.numpy(), data.train.groups
    places = torch.arange(len(labels)).numpy()
    try:
        if groups is None:
            kept, moved = train_test_split(places, test_size=fraction, random_state=seed, stratify=labels)
        else:
            parts, number = round(1 / fraction), len(set(groups.tolist()))
            if number < parts:  # scikit-learn before 1.6 moves all samples or none
                raise ValueError(f"it needs at least {parts} groups, but there are {number}")
            folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
            kept, moved = next(folds.split(places, labels, groups.numpy()))
    except ValueError as error:  # such as a class with one sample
        reason = f"data.validation_fraction {fraction} cannot split {len(labels)} training samples: {error}"
        raise DataError(reason) from None
    kept, moved = (torch.from_numpy(index).sort().values for index in (kept, moved))
    return replace(data, train=data.train.at(kept), validation=data.train.at(moved))
