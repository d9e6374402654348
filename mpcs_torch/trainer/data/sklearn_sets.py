"""The data sets inside scikit-learn: IRIS, DIGITS (grey values 0 to 16), breast cancer and wine, unscaled."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
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


def load_scikit_learn(
    source: Callable[[], "datasets.Bunch"],
    shape: Sequence[int],
    _root: Path,  # no files
    *,
    test_fraction: Fraction = 0.25,
    split_seed: Seed = 0,
) -> DataSplits:
    """Load a data set of scikit-learn as (N, *shape)."""
    bunch = source()
    inputs = torch.tensor(bunch.data, dtype=torch.float32).reshape(-1, *shape)
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    try:
        places = torch.arange(len(labels)).numpy()
        train, test = train_test_split(places, test_size=test_fraction, random_state=split_seed)
    except ValueError as error:  # such as no sample left to train on
        raise DataError(f"data.test_fraction {test_fraction} cannot split {len(labels)} samples: {error}") from None
    names = tuple(str(name) for name in bunch.target_names)
    return DataSplits(Split(inputs[train], labels[train]), Split(inputs[test], labels[test]), names)


load_iris = partial(load_scikit_learn, datasets.load_iris, (4,))
load_digits = partial(load_scikit_learn, datasets.load_digits, (1, 8, 8))
load_wine = partial(load_scikit_learn, datasets.load_wine, (13,))


def load_breast_cancer(
    root: Path,
    *,
    test_fraction: Fraction = 0.25,
    split_seed: Seed = 0,
    unused_classes: Annotated[int, Field(ge=0, le=1000)] = 0,
) -> DataSplits:
    """Load Wisconsin breast cancer: (N, 30), 2 classes, and some more that never occur (8 in the published run)."""
    load = partial(load_scikit_learn, datasets.load_breast_cancer, (30,), root)
    data = load(test_fraction=test_fraction, split_seed=split_seed)
    unused = (f"unused {number}" for number in range(1, unused_classes + 1))
    return replace(data, class_names=(*data.class_names, *unused))
