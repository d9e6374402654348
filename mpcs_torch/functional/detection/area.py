"""The partial area under the ROC curve, single points of the curve, and the H-measure."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.detection.equal_error_rate import error_crossing
from mpcs_torch.functional.detection.errors import (
    ErrorCounts,
    ErrorRates,
    area_under_roc,
    convex_hull,
)
from mpcs_torch.functional.detection.trial_measure import ClassAverage, ErrorStatistic


def partial_auc(
    preds: Tensor,
    target: Tensor,
    *,
    max_p_fa: float = 1.0,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the standardised area under the ROC curve up to a false-alarm rate; higher is better, at most 1.

    The value is 1/2 for random scores, and 1 for perfect ones. With the area :math:`A` under the ROC curve up to the
    false-alarm rate m, and the same area :math:`a = m^2 / 2` of random scores, it is

    .. math:: \frac{1}{2} \left( 1 + \frac{A - a}{m - a} \right)

    ``max_p_fa`` is m, in (0, 1]. With m = 1 the value is the AUC: the probability that a target scores higher than a
    non-target, where a tie counts as 1/2. The area averages over thresholds that no application uses; consider
    `h_measure` or a detection cost instead. The other arguments, the shape of the result, errors and warnings are those
    of `equal_error_rate`, without ``method``.

    References:
        McClish: Analyzing a portion of the ROC curve, Medical Decision Making 9, 1989.

    Example:
        >>> partial_auc(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(1., dtype=torch.float64)
    """
    return PartialAUC(num_classes, average, ignore_index, max_p_fa=max_p_fa)(preds, target)


def miss_at_false_alarm(
    preds: Tensor,
    target: Tensor,
    *,
    p_fa: float,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the minimum miss rate at a false-alarm rate of at most ``p_fa``, in [0, 1]; lower is better.

    The threshold is chosen on the same scores. For a threshold from other scores, use `half_total_error_rate` or
    `actual_detection_cost`. ``p_fa`` is in [0, 1]. The other arguments, the shape of the result, errors and warnings
    are those of `equal_error_rate`, without ``method``.

    Example:
        >>> miss_at_false_alarm(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 1, 1]), p_fa=0.0)
        tensor(0., dtype=torch.float64)
    """
    return MissAtFalseAlarm(num_classes, average, ignore_index, p_fa=p_fa)(preds, target)


def false_alarm_at_miss(
    preds: Tensor,
    target: Tensor,
    *,
    p_miss: float,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the minimum false-alarm rate at a miss rate of at most ``p_miss``, in [0, 1]; lower is better.

    ``p_miss`` is in [0, 1]. The other arguments and the result are those of `miss_at_false_alarm`.

    Example:
        >>> false_alarm_at_miss(torch.tensor([0.5, 0.4, 0.8, 0.9]), torch.tensor([0, 1, 1, 1]), p_miss=0.1)
        tensor(1., dtype=torch.float64)
    """
    measure = FalseAlarmAtMiss(num_classes, average, ignore_index, p_miss=p_miss)
    return measure(preds, target)


def precision_recall_break_even(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the number of misses at the threshold with as many false alarms as misses; lower is better.

    At this threshold, precision and recall are equal: 1 - result / (number of targets). The threshold is interpolated
    on the convex hull of the curve, so the result need not be a whole number. Arguments and errors are those of
    `equal_error_rate`, without ``method``.

    Returns:
        Float64, from 0 to the number of targets: a scalar, or ``(C,)`` with ``average="none"``.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011 (PRBEP).

    Example:
        >>> precision_recall_break_even(torch.tensor([0.5, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(0.5000, dtype=torch.float64)
    """
    return PrecisionRecallBreakEven(num_classes, average, ignore_index)(preds, target)


@dataclass(eq=False, kw_only=True)
class PartialAUC(ErrorStatistic):
    """The measure of `partial_auc`."""

    max_p_fa: float = 1.0

    direction = "max"
    limits = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the settings."""
        require(
            0 < self.max_p_fa <= 1,
            "above_at_most",
            "max_p_fa",
            self.max_p_fa,
            minimum=0,
            maximum=1,
        )
        super().__post_init__()

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the area."""
        if self.max_p_fa == 1:
            return area_under_roc(counts)
        return _standardized_area(counts.rates(), self.max_p_fa)


@dataclass(eq=False, kw_only=True)
class MissAtFalseAlarm(ErrorStatistic):
    """The measure of `miss_at_false_alarm`."""

    p_fa: float

    limits = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the settings."""
        check_rate("p_fa", self.p_fa)
        super().__post_init__()

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the miss rate."""
        first, _ = lowest_miss(counts, self.p_fa)
        return counts.rates().p_miss[first]


@dataclass(eq=False, kw_only=True)
class FalseAlarmAtMiss(ErrorStatistic):
    """The measure of `false_alarm_at_miss`."""

    p_miss: float

    limits = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the settings."""
        check_rate("p_miss", self.p_miss)
        super().__post_init__()

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the false-alarm rate."""
        first, _ = lowest_false_alarm(counts, self.p_miss)
        return counts.rates().p_fa[first]


class PrecisionRecallBreakEven(ErrorStatistic):
    """The measure of `precision_recall_break_even`."""

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the number of misses."""
        return error_crossing(convex_hull(counts)).rate


def lowest_miss(counts: ErrorCounts, p_fa: float) -> tuple[int, int]:
    """Of thresholds with a false-alarm rate up to ``p_fa``, return the first and last index with the fewest misses."""
    # Misses rise with the index, and false alarms fall.
    first = int((counts.rates().p_fa <= p_fa).int().argmax())
    last = int((counts.misses <= counts.misses[first]).sum()) - 1
    return first, last


def lowest_false_alarm(counts: ErrorCounts, p_miss: float) -> tuple[int, int]:
    """Of thresholds with a miss rate up to ``p_miss``, return the first and last index with the fewest false alarms."""
    last = int((counts.rates().p_miss <= p_miss).sum()) - 1
    first = int((counts.false_alarms <= counts.false_alarms[last]).int().argmax())
    return first, last


def check_rate(name: str, rate: float) -> None:
    """Check that ``rate`` is in [0, 1]; ``name`` is its name in the error message."""
    require(0 <= rate <= 1, "between", name, rate, minimum=0, maximum=1)


def _standardized_area(curve: ErrorRates, max_p_fa: float) -> Tensor:
    p_fa = curve.p_fa.flip(0)  # ascends to 1, beyond max_p_fa
    p_hit = 1 - curve.p_miss.flip(0)
    # Interpolate the curve at the limit, between the points around it.
    after = int((p_fa <= max_p_fa).sum())
    x0, x1 = p_fa[after - 1], p_fa[after]
    y0, y1 = p_hit[after - 1], p_hit[after]
    at_limit = y0 + (max_p_fa - x0) / (x1 - x0) * (y1 - y0)
    x = torch.cat([p_fa[:after], p_fa.new_tensor([max_p_fa])])
    y = torch.cat([p_hit[:after], at_limit.unsqueeze(0)])
    area = torch.trapezoid(y, x)
    chance = max_p_fa**2 / 2
    return (1 + (area - chance) / (max_p_fa - chance)) / 2


def h_measure(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the H-measure, in [0, 1]; higher is better, 1 is perfect, 0 is no better than ignoring the scores.

    A false alarm costs c, and a miss 1 - c. c has a density u, the same for all detectors. The share of targets is p.
    L is the expected cost if the best threshold t is used for each c, and :math:`L_0` the expected cost if, for each c,
    the better constant decision is used (accept all or reject all):

    .. math::
        H = 1 - \frac{L}{L_0}, \quad
        L = \int \min_t \left( c (1 - p) P_{fa}(t) + (1 - c) p P_{miss}(t) \right) u(c) \, dc

    u is the density of the beta distribution with the parameters 1 + p and 2 - p. Its mode is at c = p, where both
    constant decisions cost the same. Needs scipy. Arguments, the shape of the result and errors are those of
    `equal_error_rate`, without ``method``.

    References:
        Hand: Measuring classifier performance: a coherent alternative to the area under the ROC curve, Machine Learning
        77, 2009; Hand, Anagnostopoulos: A better Beta for the H measure of classification performance, Pattern
        Recognition Letters 40, 2014.

    Example:
        >>> h_measure(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        tensor(0.5000, dtype=torch.float64)
    """
    return HMeasure(num_classes, average, ignore_index)(preds, target)


class HMeasure(ErrorStatistic):
    """The measure of `h_measure`."""

    direction = "max"
    limits = (0.0, 1.0)

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the H-measure."""
        hull = convex_hull(counts).rates()
        share = hull.targets.double() / (hull.targets + hull.nontargets)
        misses = share * hull.p_miss
        alarms = (1 - share) * hull.p_fa
        # The next vertex (more misses, fewer false alarms) becomes optimal above these values of c.
        breakpoints = misses.diff() / (misses.diff() - alarms.diff())
        ends = torch.cat([breakpoints.new_zeros(1), breakpoints, breakpoints.new_ones(1)])
        of_alarms, of_misses = _mean_costs(ends, share)
        constant = torch.stack([share.new_zeros(()), share, share.new_ones(())])
        accept_all, reject_all = _mean_costs(constant, share)
        best = accept_all[0] * (1 - share) + reject_all[1] * share
        return 1 - (of_alarms * alarms + of_misses * misses).sum() / best


def _mean_costs(ends: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Integrate c u(c), and (1 - c) u(c), from each of ``ends`` to the next; u is the density in `h_measure`."""
    from scipy.special import betainc

    # c u(c) is proportional to the density of another beta distribution, with the factor (1 + p) / 3.
    p = share.item()
    values = ends.cpu().numpy()
    alarms = torch.from_numpy(betainc(2 + p, 2 - p, values)).to(ends).diff()
    misses = torch.from_numpy(betainc(1 + p, 3 - p, values)).to(ends).diff()
    return (1 + share) / 3 * alarms, (2 - share) / 3 * misses
