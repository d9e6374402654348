"""The data sets inside scikit-learn: IRIS, DIGITS, breast cancer and wine, unscaled."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from sklearn import datasets
from sklearn.model_selection import train_test_split

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data.splits import DataSplits, Split

Fraction = Annotated[float, Field(gt=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


def load_iris(root: Path, *, test_fraction: Fraction = 0.25, split_seed: Seed = 0) -> DataSplits:  # noqa: ARG001  # no files
    """Load IRIS: (N, 4), 3 classes."""
    return _split(datasets.load_iris(), test_fraction, split_seed)


def load_digits(root: Path, *, test_fraction: Fraction = 0.25, split_seed: Seed = 0) -> DataSplits:  # noqa: ARG001  # no files
    """Load DIGITS: (N, 1, 8, 8) grey values 0 to 16, 10 classes."""
    return _split(datasets.load_digits(), test_fraction, split_seed, shape=(1, 8, 8))


def load_breast_cancer(
    root: Path,  # noqa: ARG001  # no files
    *,
    test_fraction: Fraction = 0.25,
    split_seed: Seed = 0,
    unused_classes: Annotated[int, Field(ge=0, le=1000)] = 0,
) -> DataSplits:
    """Load Wisconsin breast cancer: (N, 30), 2 classes, and some more that never occur (8 in the published run)."""
    data = _split(datasets.load_breast_cancer(), test_fraction, split_seed)
    unused = (f"unused {number}" for number in range(1, unused_classes + 1))
    return replace(data, class_names=(*data.class_names, *unused))


def load_wine(root: Path, *, test_fraction: Fraction = 0.25, split_seed: Seed = 0) -> DataSplits:  # noqa: ARG001  # no files
    """Load wine: (N, 13), 3 classes."""
    return _split(datasets.load_wine(), test_fraction, split_seed)


def _split(
    bunch: "datasets.Bunch", test_fraction: float, split_seed: int, shape: tuple[int, ...] | None = None
) -> DataSplits:
    inputs = torch.tensor(bunch.data, dtype=torch.float32)
    inputs = inputs if shape is None else inputs.reshape(-1, *shape)
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    try:
        places = torch.arange(len(labels)).numpy()
        train, test = train_test_split(places, test_size=test_fraction, random_state=split_seed)
    except ValueError as error:  # such as no sample left to train on
        raise DataError(f"data.test_fraction {test_fraction} cannot split {len(labels)} samples: {error}") from None
    names = tuple(str(name) for name in bunch.target_names)
    return DataSplits(Split(inputs[train], labels[train]), Split(inputs[test], labels[test]), names)
