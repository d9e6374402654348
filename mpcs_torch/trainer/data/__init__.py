"""Data sets by name: one file per source, one line here each."""

from mpcs_torch.trainer.data.mnist import load_mnist
from mpcs_torch.trainer.data.sklearn_sets import load_breast_cancer, load_digits, load_iris
from mpcs_torch.trainer.data.splits import DataError, DataRequest, DataSplits, Loader

DATASETS: dict[str, Loader] = {
    "iris": load_iris,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
    "mnist": load_mnist,
}

__all__ = ["DATASETS", "DataError", "DataRequest", "DataSplits", "Loader"]
