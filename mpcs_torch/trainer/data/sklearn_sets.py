"""The sets that scikit-learn ships: IRIS, DIGITS and breast cancer, unscaled."""

import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split

from mpcs_torch.trainer.data.splits import DataError, DataRequest, DataSplits


def load_iris(request: DataRequest) -> DataSplits:
    """IRIS: (N, 4), 3 classes."""
    return _split(datasets.load_iris(), request)


def load_digits(request: DataRequest) -> DataSplits:
    """DIGITS: (N, 1, 8, 8) grey values 0 to 16, 10 classes."""
    return _split(datasets.load_digits(), request, shape=(1, 8, 8))


def load_breast_cancer(request: DataRequest) -> DataSplits:
    """Wisconsin breast cancer: (N, 30), 2 classes."""
    return _split(datasets.load_breast_cancer(), request)


def _split(bunch: "datasets.Bunch", request: DataRequest, shape: tuple[int, ...] | None = None) -> DataSplits:
    inputs = torch.tensor(bunch.data, dtype=torch.float32)
    if shape is not None:
        inputs = inputs.reshape(-1, *shape)
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    try:
        train, test = train_test_split(
            torch.arange(len(labels)).numpy(), test_size=request.test_fraction, random_state=request.split_seed
        )
    except ValueError as error:  # such as no sample left to train on
        raise DataError(
            f"data.test_fraction {request.test_fraction} cannot split {len(labels)} samples: {error}"
        ) from None
    names = tuple(str(name) for name in bunch.target_names)
    return DataSplits(inputs[train], labels[train], inputs[test], labels[test], names)
