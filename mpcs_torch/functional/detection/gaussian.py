"""The equal error rate of Gaussian scores, from their means and deviations."""

from typing import NamedTuple

import torch
from torch import Tensor


class GaussianEqualError(NamedTuple):
    """An equal error rate in [0, 1], and the threshold that has it."""

    rate: Tensor
    threshold: Tensor


def gaussian_equal_error(
    nontarget_mean: float | Tensor,
    nontarget_deviation: float | Tensor,
    target_mean: float | Tensor,
    target_deviation: float | Tensor,
) -> GaussianEqualError:
    r"""Compute the equal error rate of Gaussian scores, in [0, 1], and its threshold; a lower rate is better.

    Scores of non-targets have the mean :math:`m_0` and the standard deviation :math:`s_0`, those of targets
    :math:`m_1` and :math:`s_1`. Scores of at least t are accepted:

    .. math::
        t = \frac{m_0 s_1 + m_1 s_0}{s_0 + s_1}, \qquad
        \mathrm{EER} = P_{miss}(t) = P_{fa}(t) = \Phi\left(-\frac{m_1 - m_0}{s_0 + s_1}\right)

    with the distribution function :math:`\Phi` of the standard normal distribution. The rate is above 1/2 if targets
    have the lower mean.

    With different deviations, the likelihood ratio of the two densities is not a rising function of the score: the
    class with the larger deviation is the more likely one at both ends. A threshold on the score is then not the best
    decision, which accepts or rejects an interval of scores. `equal_error_rate` of samples can be lower than this rate,
    because it takes the convex hull of the ROC by default (``method="rocch"``); ``method="interpolated"`` tends to it.

    Args:
        nontarget_mean: The mean of the scores of non-targets, finite. All arguments may be tensors that broadcast.
        nontarget_deviation: Their standard deviation, finite and above 0.
        target_mean: The mean of the scores of targets, finite.
        target_deviation: Their standard deviation, finite and above 0.

    Returns:
        Float64, of the broadcast shape.

    Raises:
        ValueError: If an argument breaks its rule above.

    References:
        Kinnunen: Evaluation of classifier accuracy, UEF summer school, 2017, homework on Gaussian scores.

    Example:
        >>> rate, threshold = gaussian_equal_error(0.0, 1.0, 2.0, 0.5)
        >>> print(f"{rate:.4f} at {threshold:.4f}")
        0.0912 at 1.3333
    """
    m0, m1 = _mean("nontarget_mean", nontarget_mean), _mean("target_mean", target_mean)
    s0 = _deviation("nontarget_deviation", nontarget_deviation)
    s1 = _deviation("target_deviation", target_deviation)
    rate = torch.special.ndtr(-(m1 - m0) / (s0 + s1))
    return GaussianEqualError(rate, (m0 * s1 + m1 * s0) / (s0 + s1))


def _mean(name: str, value: float | Tensor) -> Tensor:
    values = torch.as_tensor(value, dtype=torch.float64)
    _refuse(name, values, ~values.isfinite(), "finite")
    return values


def _deviation(name: str, value: float | Tensor) -> Tensor:
    values = torch.as_tensor(value, dtype=torch.float64)
    _refuse(name, values, ~(values.isfinite() & (values > 0)), "finite and above 0")
    return values


def _refuse(name: str, values: Tensor, bad: Tensor, rule: str) -> None:
    if bad.any():
        raise ValueError(f"{name} must be {rule}, but got {values[bad][0].item():g}.")
