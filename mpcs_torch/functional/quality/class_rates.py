"""Precision, recall and error rate of each class."""

from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.quality.class_error_rates import class_error_rates_of


class ClassRates(NamedTuple):
    """Rates of each class, (C,) each, in [0, 1]; NaN where nothing can be divided."""

    precision: Tensor
    """Of the predictions of the class, the share that is right; higher is better."""
    recall: Tensor
    """Of the samples of the class, the share that is found; higher is better."""
    error_rate: Tensor
    """1 minus recall; lower is better."""


def class_rates(confusion: Tensor) -> ClassRates:
    """Compute the rates of each class from counts (C, C), rows true classes."""
    counts = confusion.to(widest_float(confusion.device))
    right = counts.diagonal()
    return ClassRates(right / counts.sum(dim=0), right / counts.sum(dim=1), class_error_rates_of(counts))
