"""Data sets by name: one file and one line here for each source."""

from collections.abc import Callable

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data.add import load_add
from mpcs_torch.trainer.data.mnist import load_mnist
from mpcs_torch.trainer.data.sklearn_sets import load_breast_cancer, load_digits, load_iris, load_wine
from mpcs_torch.trainer.data.splits import DataSplits, Split
from mpcs_torch.trainer.data.ucr import load_ucr

DATASETS: dict[str, Callable[..., DataSplits]] = {
    "iris": load_iris,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
    "wine": load_wine,
    "mnist": load_mnist,
    "ucr": load_ucr,
    "add": load_add,
}
"""Called with the data root; a config sets their keyword-only arguments."""

__all__ = ["DATASETS", "DataError", "DataSplits", "Split"]
