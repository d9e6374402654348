"""Areas under the ROC, and single points on it."""

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ErrorRates, area_under_roc, hull_of, observed_errors


def partial_auc(preds: Tensor, target: Tensor, *, max_p_fa: float = 1.0) -> Tensor:
    r"""Compute the standardised area under the ROC up to a false-alarm rate; higher is better, 1 perfect, 1/2 chance.

    With :math:`A` the area under the ROC up to the false-alarm rate m, and :math:`a = m^2 / 2` the area of chance:

    .. math:: \frac{1}{2} \left( 1 + \frac{A - a}{m - a} \right)

    With ``max_p_fa=1`` it is the AUC: the probability that a target scores higher than a non-target, ties counting 1/2.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        max_p_fa: m, in (0, 1].

    Returns:
        A float64 scalar.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        McClish: Analyzing a portion of the ROC curve, Medical Decision Making 9, 1989.

    Example:
        >>> partial_auc(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(1., dtype=torch.float64)
    """
    if not 0 < max_p_fa <= 1:
        raise ValueError(f"max_p_fa must be above 0 and at most 1, but got {max_p_fa}.")
    counts = observed_errors(preds, target)
    return area_under_roc(counts) if max_p_fa == 1 else _standardized_area(counts.rates(), max_p_fa)


def miss_at_false_alarm(preds: Tensor, target: Tensor, *, p_fa: float) -> Tensor:
    """Compute the minimum miss rate at a false-alarm rate of at most ``p_fa``, in [0, 1]; lower is better.

    The other arguments and the errors are those of `partial_auc`.

    Returns:
        A float64 scalar.

    Example:
        >>> miss_at_false_alarm(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 1, 1]), p_fa=0.0)
        tensor(0., dtype=torch.float64)
    """
    _check_rate("p_fa", p_fa)
    curve = observed_errors(preds, target).rates()
    return curve.p_miss[curve.p_fa <= p_fa].min()


def false_alarm_at_miss(preds: Tensor, target: Tensor, *, p_miss: float) -> Tensor:
    """Compute the minimum false-alarm rate at a miss rate of at most ``p_miss``, in [0, 1]; lower is better.

    The other arguments and the errors are those of `partial_auc`.

    Returns:
        A float64 scalar.

    Example:
        >>> false_alarm_at_miss(torch.tensor([0.5, 0.4, 0.8, 0.9]), torch.tensor([0, 1, 1, 1]), p_miss=0.1)
        tensor(1., dtype=torch.float64)
    """
    _check_rate("p_miss", p_miss)
    curve = observed_errors(preds, target).rates()
    return curve.p_fa[curve.p_miss <= p_miss].min()


def precision_recall_break_even(preds: Tensor, target: Tensor) -> Tensor:
    """Compute the number of errors of each kind where misses and false alarms are equally many; lower is better.

    At this point precision equals recall: both are 1 minus this number divided by the number of targets. The point lies
    on the convex hull, so the number need not be whole. Arguments and errors are those of `partial_auc`.

    Returns:
        A float64 scalar, from 0 to the number of targets.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011 (PRBEP).

    Example:
        >>> precision_recall_break_even(torch.tensor([0.5, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(0.5000, dtype=torch.float64)
    """
    counts = observed_errors(preds, target)
    hull = hull_of(counts)
    misses = hull.misses.double()
    gap = misses - hull.false_alarms  # rises from below 0 to above
    after = (gap >= 0).int().argmax()
    share = -gap[after - 1] / (gap[after] - gap[after - 1])
    return misses[after - 1] + share * (misses[after] - misses[after - 1])


def _standardized_area(curve: ErrorRates, max_p_fa: float) -> Tensor:
    p_fa, p_hit = curve.p_fa.flip(0), 1 - curve.p_miss.flip(0)  # rising to 1, so beyond the limit
    after = int((p_fa <= max_p_fa).sum())
    share = (max_p_fa - p_fa[after - 1]) / (p_fa[after] - p_fa[after - 1])
    at_limit = p_hit[after - 1] + share * (p_hit[after] - p_hit[after - 1])
    x = torch.cat([p_fa[:after], p_fa.new_tensor([max_p_fa])])
    area = torch.trapezoid(torch.cat([p_hit[:after], at_limit.unsqueeze(0)]), x)
    chance = max_p_fa**2 / 2
    return (1 + (area - chance) / (max_p_fa - chance)) / 2


def _check_rate(name: str, rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"{name} must be from 0 to 1, but got {rate}.")
