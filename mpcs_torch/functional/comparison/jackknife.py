"""Leave-one-group-out jackknife intervals of any statistic."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, check_confidence


class JackknifeInterval(NamedTuple):
    """An estimate and the ends of its interval, all in the shape of the statistic."""

    estimate: Tensor
    low: Tensor
    high: Tensor


def jackknife_interval(
    statistic: Callable[[Tensor], Tensor], groups: Tensor, *, confidence: float = CONFIDENCE
) -> JackknifeInterval:
    r"""Compute the jackknife estimate of a statistic and its confidence interval over groups of samples.

    There are G groups. With the statistic :math:`s` of all samples, :math:`s_g` of those without group g, and the mean
    :math:`\bar s` of the :math:`s_g`, the estimate and the interval are

    .. math::
        G s - (G - 1) \bar s \pm t_{G - 1} \sqrt{\frac{G - 1}{G} \sum_g (s_g - \bar s)^2}

    Samples of one recording, speaker or patient are correlated, so intervals over samples would be too narrow. Groups
    must be independent. The interval is for smooth statistics, such as F, not for medians or other quantiles. It
    can exceed the range of the statistic. Needs scipy.

    Args:
        statistic: A function that computes a float tensor from indices (M,) of samples, which are in ascending order.
        groups: ``(N,)`` integers: the group of each sample. There must be at least 2 groups.
        confidence: In (0, 1).

    Raises:
        ValueError: If an argument breaks its rule above.

    References:
        Tukey: Bias and confidence in not quite large samples, Annals of Mathematical Statistics 29, 1958. Used by
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1, Table 2 and Fig. 2.

    Example:
        >>> scores, recording = torch.tensor([0.5, 0.7, 0.4, 0.8, 0.9]), torch.tensor([0, 0, 1, 2, 2])
        >>> interval = jackknife_interval(lambda kept: scores[kept].mean(), recording)
        >>> print(" ".join(f"{value:.2f}" for value in interval))
        0.67 0.16 1.19
    """
    from scipy.special import stdtrit  # scipy.stats takes longer to import

    if groups.ndim != 1 or groups.is_floating_point() or groups.is_complex():
        raise ValueError(f"groups must be integers of shape (N,), but got {groups.dtype} of {tuple(groups.shape)}.")
    check_confidence(confidence)
    names = torch.unique(groups)
    count = len(names)
    if count < 2:
        raise ValueError(f"groups must hold at least 2 groups, but hold {count}.")
    wide = widest_float(groups.device)
    whole = statistic(torch.arange(len(groups), device=groups.device)).to(wide)
    without = torch.stack([statistic((groups != name).nonzero().squeeze(1)).to(wide) for name in names])
    mean = without.mean(dim=0)
    estimate = count * whole - (count - 1) * mean
    error = ((count - 1) / count * (without - mean).square().sum(dim=0)).sqrt()
    margin = float(stdtrit(count - 1, (1 + confidence) / 2)) * error
    return JackknifeInterval(estimate, estimate - margin, estimate + margin)
