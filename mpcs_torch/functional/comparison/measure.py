"""A metric that several systems are compared by."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.comparison.sample_statistics import Statistic, mean_statistic


class Measure(NamedTuple):
    """A metric of each system on the same samples."""

    name: str
    """As in a sentence, such as "Cllr" or "equal error rate"."""
    statistics: Sequence[Statistic]
    """One of each system."""
    lower_is_better: bool = True
    is_rate: bool = False
    """Whether values are printed in percent."""
    wrong: Sequence[Tensor] | None = None
    """``(N,)`` bools of each system, if the statistic is the share of samples that it got wrong: then the p-value is
    that of `mcnemar_test` where samples are drawn one by one."""


def rate_measure(name: str, wrong: Sequence[Tensor]) -> Measure:
    """Make the measure of the share of samples that each system got wrong.

    Args:
        name: As in a sentence, such as "error rate" or "rate of dangerous errors".
        wrong: ``(N,)`` bools of each system, on the same samples.

    Example:
        >>> import torch
        >>> rate_measure("error rate", [torch.tensor([True, False])]).is_rate
        True
    """
    return Measure(name, [mean_statistic(each) for each in wrong], is_rate=True, wrong=wrong)
