"""McNemar's exact test of two systems that were right or wrong on the same samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor


class McNemarTest(NamedTuple):
    """The samples that one of two systems alone got wrong, and the p-value of the test that both are equally often."""

    only_first: int
    """The number of samples that only the first system got wrong."""
    only_second: int
    """The number of samples that only the second system got wrong."""
    p_value: float
    """In (0, 1], two-sided."""


def mcnemar_test(first: Tensor, second: Tensor) -> McNemarTest:
    r"""Test whether two systems are wrong equally often, by McNemar's exact test of independent samples.

    If both are, each of the n = b + c samples that only one system got wrong is as likely to be in b as in c:

    .. math:: p = \min(1, 2 \, P[\mathrm{Bin}(b + c, 1/2) \le \min(b, c)])

    The test rejects a true hypothesis at most as often as its level, and less often if b + c is small. It assumes that
    samples are independent; samples that share a speaker or a patient are not. Needs scipy.

    Args:
        first: ``(N,)`` bools, True for samples that the first system got wrong: errors, dangerous errors, or wrong
            decisions at a threshold.
        second: ``(N,)`` bools, of the second system on the same samples.

    Raises:
        ValueError: If a dtype or a shape breaks its rule above.

    References:
        McNemar: Note on the sampling error of the difference between correlated proportions, Psychometrika 12, 1947.

    Example:
        >>> mcnemar_test(torch.tensor([True] * 6 + [False]), torch.tensor([False] * 7))
        McNemarTest(only_first=6, only_second=0, p_value=0.03125)
    """
    from scipy.special import bdtr  # scipy.stats takes longer to import

    first, second = as_tensor(first, "first"), as_tensor(second, "second")
    for name, wrong in (("first", first), ("second", second)):
        if wrong.dtype != torch.bool or wrong.ndim != 1:
            raise ValueError(f"{name} must be bools (N,), but got {wrong.dtype} {tuple(wrong.shape)}.")
    if len(first) != len(second):
        raise ValueError(f"first and second must hold the same samples, but got {len(first)} and {len(second)}.")
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    p_value = 2 * bdtr(min(only_first, only_second), only_first + only_second, 0.5)
    return McNemarTest(only_first, only_second, min(1.0, float(p_value)))
