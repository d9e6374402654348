"""Misses and false alarms of a detector at every threshold: what all detection metrics are read from."""

import warnings
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.inputs.checks import check_trials
from mpcs_torch.functional.inputs.faults import Fault, raise_first


class ReversedScoresWarning(UserWarning):
    """Targets score lower than nontargets more often than higher."""


class ErrorRates(NamedTuple):
    """Error rates of a detector by threshold; a score is accepted as a target if it is at least the threshold."""

    p_miss: Tensor
    """(K,), rising from 0 to 1: the share of targets that are rejected."""
    p_fa: Tensor
    """(K,), falling from 1 to 0: the share of nontargets that are accepted."""
    thresholds: Tensor
    """(K,), ascending: the distinct scores, and infinity."""
    targets: Tensor
    """How many targets the rates rest on: int64 scalar."""
    nontargets: Tensor
    """How many nontargets."""

    def counts(self) -> "ErrorCounts":
        """The errors themselves."""
        misses, false_alarms = (self.p_miss * self.targets).round(), (self.p_fa * self.nontargets).round()
        return ErrorCounts(misses.long(), false_alarms.long(), self.thresholds)


class ErrorCounts(NamedTuple):
    """The same in whole numbers, which tie and cross exactly; float64 scores."""

    misses: Tensor
    """(K,), int64."""
    false_alarms: Tensor
    """(K,), int64."""
    thresholds: Tensor
    """(K,)."""

    @property
    def targets(self) -> Tensor:
        """How many targets there are: int64 scalar."""
        return self.misses[-1]

    @property
    def nontargets(self) -> Tensor:
        """How many nontargets there are: int64 scalar."""
        return self.false_alarms[0]

    def rates(self) -> ErrorRates:
        """As shares."""
        misses, false_alarms = self.misses.double(), self.false_alarms.double()
        return ErrorRates(
            misses / misses[-1], false_alarms / false_alarms[0], self.thresholds, self.targets, self.nontargets
        )

    def at(self, index: Tensor) -> "ErrorCounts":
        """Some of the thresholds."""
        return ErrorCounts(self.misses[index], self.false_alarms[index], self.thresholds[index])


def detection_curve(preds: Tensor, target: Tensor) -> ErrorRates:
    r"""Miss and false-alarm rates at every threshold, tied scores at once, both ends included.

    .. math:: P_{miss}(t) = \frac{|\{s_i < t\}_{targets}|}{T}, \quad P_{fa}(t) = \frac{|\{s_i \ge t\}_{nontargets}|}{N}

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range, infinities included.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for nontargets; both must occur.

    Returns:
        Three ``(K,)`` float64 tensors, one entry for each distinct score and one for an infinite threshold, and how
        many targets and nontargets there are. (A score of +inf is accepted at every threshold but this one.)

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If the area under the ROC is below 1/2.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.

    Example:
        >>> curve = detection_curve(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """
    return observed_errors(preds, target).rates()


def roc_convex_hull(preds: Tensor, target: Tensor) -> ErrorRates:
    """The vertices of the lower convex hull of the detection curve (the upper one of the ROC), by rising threshold.

    Between its vertices lie the operating points of detectors that choose between two thresholds at random. Arguments
    and errors are those of `detection_curve`.

    References:
        Provost, Fawcett: Robust classification for imprecise environments, Machine Learning 42, 2001.

    Example:
        >>> hull = roc_convex_hull(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> hull.p_miss.tolist(), hull.p_fa.tolist()
        ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    """
    return hull_of(observed_errors(preds, target)).rates()


def observed_errors(preds: Tensor, target: Tensor) -> ErrorCounts:
    """The errors of checked scores; warns if they seem to be reversed."""
    counts = count_errors(*checked_scores(preds, target))
    warn_if_reversed(counts)
    return counts


def warn_if_reversed(counts: ErrorCounts, of: str = "") -> None:
    """Warn of an area under the ROC below 1/2."""
    area = area_under_roc(counts).item()
    if area < 0.5:
        problem = f"the area under the ROC{of} is {area:.4g}, below 1/2: scores may be reversed"
        warnings.warn(f"{problem} (targets must score higher).", ReversedScoresWarning, stacklevel=4)


def area_under_roc(counts: ErrorCounts) -> Tensor:
    """The share of pairs in which the target scores higher, ties counting half: float64 scalar, exact up to 2^52."""
    lost, misses = counts.false_alarms[:-1] - counts.false_alarms[1:], counts.misses
    doubled = 2 * counts.targets * counts.nontargets
    return (doubled - lost.mul_(misses[1:] + misses[:-1]).sum()).double() / doubled


def checked_scores(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores in float64 and bool labels, both (N,); refuses NaN, other labels than 0 and 1, and an empty class."""
    if not preds.is_floating_point() or preds.ndim != 1:
        raise ValueError(f"preds must be floating point scores (N,), but got {preds.dtype} {tuple(preds.shape)}.")
    check_trials(preds, target)
    faults = [Fault("preds must hold no NaN", preds.isnan(), preds)]
    if target.dtype != torch.bool:
        rule = "target must hold 0 for nontargets and 1 for targets"
        faults.append(Fault(rule, (target != 0) & (target != 1), target))
    raise_first(faults)
    labels = target.bool()
    for name, is_missing in (("targets (1)", not labels.any()), ("nontargets (0)", labels.all())):
        if is_missing:
            raise ValueError(f"target must hold both classes, but holds no {name}.")
    return preds.double(), labels


def count_errors(scores: Tensor, labels: Tensor) -> ErrorCounts:
    """The errors at every distinct score and at infinity."""
    size = len(scores)
    thresholds, misses = scores.new_empty(size + 1), labels.new_empty(size + 1, dtype=torch.int64)
    thresholds[-1], misses[0] = inf, 0
    order = torch.empty_like(labels, dtype=torch.int64)
    torch.sort(scores, out=(thresholds[:-1], order))  # in place: at 10^7 scores each copy takes its time
    torch.cumsum(labels.index_select(0, order), 0, out=misses[1:])
    # Neither rejected nor a target: size - i trials, less T - m_i targets.
    nontargets = size - int(misses[-1])
    false_alarms = torch.arange(nontargets, nontargets - size - 1, -1, device=scores.device).add_(misses)
    is_new = thresholds[1:-1] != thresholds[:-2]
    if is_new.all():
        return ErrorCounts(misses, false_alarms, thresholds)
    kept = torch.cat([is_new.new_ones(1), is_new, is_new.new_ones(1)])
    return ErrorCounts(misses[kept], false_alarms[kept], thresholds[kept])


def middle_of(low: Tensor, high: Tensor) -> Tensor:
    """A threshold in the middle of an interval, open below: its upper end where no float lies between, or no middle."""
    middle = low / 2 + high / 2  # their sum could be infinite
    middle = torch.where(middle.isnan(), 0.0, middle)
    return torch.where(middle > low, middle, high)


def hull_of(counts: ErrorCounts) -> ErrorCounts:
    """The vertices of the lower convex hull, without points that lie on its edges."""
    return counts.at(hull_vertices(counts))
