"""Precision, recall and error rate of each class."""

from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts
from mpcs_torch.functional.quality.class_error_rates import class_error_rates_of


class ClassRates(NamedTuple):
    """Rates of each class, (C,) each, in [0, 1]; NaN where nothing can be divided."""

    precision: Tensor
    """Of the predictions of the class, the share that is right; higher is better."""
    recall: Tensor
    """Of the samples of the class, the share that is found; higher is better."""
    error_rate: Tensor
    """1 minus recall; lower is better."""


def class_rates(counts: ClassCounts) -> ClassRates:
    """Compute the rates of each class."""
    return ClassRates(counts.right / counts.predicted, counts.right / counts.true, class_error_rates_of(counts))
