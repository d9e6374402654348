"""Trials (scored samples) of detectors, and the numbers of misses and false alarms at every threshold.

Errors are counted in whole numbers, so that comparisons of rates are exact; there is no ``sample_weight``.
"""

import warnings
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.inputs.arrays import as_tensors, detached
from mpcs_torch.functional.inputs.checks import check_scores, check_trials
from mpcs_torch.functional.inputs.faults import Fault, outside, raise_first
from mpcs_torch.functional.inputs.labels import Labels, flatten_labels, label_rule

MIN_ERRORS = 30
"""The number of errors below which a rate is marked. With 30 errors of independent trials, the true rate is within 30 %
of the measured one with 90 % confidence (Doddington et al.: The NIST speaker recognition evaluation, 2000)."""


class ReversedScoresWarning(UserWarning):
    """Scores seem to be reversed: targets score lower than non-targets more often than chance explains."""


class ErrorRates(NamedTuple):
    """Error rates of a detector at each threshold; scores at or above the threshold are accepted."""

    p_miss: Tensor
    """(K,), rising from 0 to 1: the miss rate, the share of targets that are rejected."""
    p_fa: Tensor
    """(K,), falling from 1 to 0: the false-alarm rate, the share of non-targets that are accepted."""
    thresholds: Tensor
    """(K,), ascending: the distinct scores, and infinity."""
    targets: Tensor
    """int64 scalar: the number of targets."""
    nontargets: Tensor
    """int64 scalar: the number of non-targets."""

    def counts(self) -> "ErrorCounts":
        """Return the numbers of errors instead of the rates."""
        misses = (self.p_miss * self.targets).round()
        false_alarms = (self.p_fa * self.nontargets).round()
        return ErrorCounts(misses.long(), false_alarms.long(), self.thresholds)


class ErrorCounts(NamedTuple):
    """Numbers of misses and false alarms at each of K thresholds: integers, so that comparisons of rates are exact."""

    misses: Tensor
    """(K,), int64, rising from 0 to the number of targets."""
    false_alarms: Tensor
    """(K,), int64, falling from the number of non-targets to 0."""
    thresholds: Tensor
    """(K,), float64, ascending: the distinct scores, and infinity."""

    @property
    def targets(self) -> Tensor:
        """The number of targets: int64 scalar."""
        return self.misses[-1]

    @property
    def nontargets(self) -> Tensor:
        """The number of non-targets: int64 scalar."""
        return self.false_alarms[0]

    def rates(self) -> ErrorRates:
        """Return the rates of errors instead of the numbers."""
        misses = self.misses.double()
        false_alarms = self.false_alarms.double()
        return ErrorRates(
            misses / misses[-1],
            false_alarms / false_alarms[0],
            self.thresholds,
            self.targets,
            self.nontargets,
        )

    def at(self, index: Tensor) -> "ErrorCounts":
        """Return the errors at the thresholds with the indices ``index``."""
        return ErrorCounts(
            self.misses[index], self.false_alarms[index], self.thresholds[index]
        )


def warn_if_reversed(area: Tensor, counts: ErrorCounts, name: str = "") -> None:
    """Warn if ``area``, under the ROC curve, is more than 2 standard deviations (of random scores) below 1/2."""
    targets = int(counts.targets)
    nontargets = int(counts.nontargets)
    # Mann and Whitney, 1947.
    variance = (targets + nontargets + 1) / (12 * targets * nontargets)
    deviation = variance**0.5
    if area < 0.5 - 2 * deviation:
        problem = f"the area under the ROC{name} is {area.item():.4g}, below 1/2: scores may be reversed"
        warnings.warn(
            f"{problem} (targets must score higher).", ReversedScoresWarning, stacklevel=4
        )


def area_under_roc(counts: ErrorCounts) -> Tensor:
    """Compute the share of (target, non-target) pairs in which the target scores higher, ties counting 1/2; float64."""
    nontargets_at = counts.false_alarms[:-1] - counts.false_alarms[1:]
    misses = counts.misses
    # Each non-target wins against the targets below it, and half against those of its score: doubled, all are whole.
    # The product is in place, because there may be many trials.
    lost = nontargets_at.mul_(misses[1:] + misses[:-1]).sum()
    doubled = 2 * counts.targets * counts.nontargets
    return (doubled - lost).double() / doubled


def checked_scores(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Validate scores and labels (N,), and convert them to float64 and bool."""
    check_vector(preds, "N")
    check_trials(preds, target)
    target_rule, score_rule = trial_rules(None)
    label_fault = Fault(target_rule, target, outside(target.long(), 0, 1))
    raise_first([Fault(score_rule, preds, preds.isnan()), label_fault])
    labels = target.bool()
    check_both_occur(labels)
    return detached(preds).double(), labels


def check_vector(preds: Tensor, size: str) -> None:
    """Check that ``preds`` has one dimension, named ``size`` in the error message, and is floating point."""
    is_vector = preds.is_floating_point() and preds.ndim == 1
    require(is_vector, "float_shape", "preds", preds, shape=f"({size},)")


def check_both_occur(labels: Tensor, name: str = "") -> None:
    """Check that ``labels`` has both targets and non-targets; the error message ends with ``name`` (" of class 2")."""
    missing = missing_kind(labels)
    if missing is not None:
        raise InvalidValueError("both_kinds", "target", missing=missing, of=name)


def missing_kind(labels: Tensor) -> str | None:
    """Return "targets" if bool ``labels`` (N,) has none, "non-targets" if it has only targets, and None otherwise."""
    if not labels.any():
        return "targets"
    return "non-targets" if labels.all() else None


def count_errors(scores: Tensor, labels: Tensor) -> ErrorCounts:
    """Count errors of float64 scores and bool labels (N,) with each distinct score, and infinity, as the threshold."""
    ascending, order = scores.sort()
    thresholds = nn.functional.pad(ascending, (0, 1), value=inf)
    misses = nn.functional.pad(labels[order].cumsum(0), (1, 0))
    rejected = torch.arange(len(misses), device=scores.device)
    nontargets = len(scores) - misses[-1]
    false_alarms = nontargets - (rejected - misses)
    is_new = ascending[1:] != ascending[:-1]  # equal scores are rejected together
    kept = nn.functional.pad(is_new, (1, 1), value=True)
    return ErrorCounts(misses[kept], false_alarms[kept], thresholds[kept])


def midpoint(low: Tensor, high: Tensor) -> Tensor:
    """Return the middle of (low, high]: 0 if both are infinite; ``high`` if one of them is, or no float is between."""
    middle = low / 2 + high / 2  # low + high could overflow
    middle = torch.where(middle.isnan(), 0.0, middle)
    return torch.where(middle > low, middle, high)


def convex_hull(counts: ErrorCounts) -> ErrorCounts:
    """Return the errors at the vertices of the lower convex hull of the curve of misses against false alarms."""
    return counts.at(hull_vertices(counts))


def hull_vertices(counts: ErrorCounts) -> Tensor:
    """Return the indices of the thresholds at the vertices of the `convex_hull`: int64, ascending, from 0 to the last.

    They bound the blocks of an isotonic regression (PAV) of the share of targets from one threshold to the next.
    """
    from scipy.optimize import isotonic_regression  # scipy.optimize takes long to import

    targets = counts.misses.diff().cpu().numpy()
    nontargets = -counts.false_alarms.diff().cpu().numpy()
    trials = targets + nontargets
    regression = isotonic_regression(targets / trials, weights=trials)
    blocks = torch.from_numpy(regression.blocks).to(counts.misses.device)
    # Rounding may leave a point on an edge; integers are exact.
    points = torch.stack([counts.false_alarms[blocks], counts.misses[blocks]], dim=1)
    hull = list[tuple[int, Point]]()
    for index, (x, y) in zip(blocks.tolist(), points.tolist(), strict=True):
        while len(hull) > 1 and _is_on_edge(hull[-2][1], hull[-1][1], (x, y)):
            hull.pop()
        hull.append((index, (x, y)))
    return blocks.new_tensor([index for index, _ in hull])


Point = tuple[int, int]
"""The numbers of false alarms and of misses at a threshold."""


def _is_on_edge(before: Point, point: Point, after: Point) -> bool:
    """Return whether ``point`` is on or above the line from ``before`` to ``after``: no vertex of the hull."""
    slope_before = (before[0] - point[0]) * (after[1] - point[1])
    slope_after = (point[0] - after[0]) * (point[1] - before[1])
    return slope_before <= slope_after


IGNORED = -1
"""The label of ignored samples."""


class TrialBatch(NamedTuple):
    """A batch of M scores and labels, flattened."""

    scores: Tensor
    """(M,), or (M, C) with classes; floating point, in the dtype of the input."""
    checked: Labels
    """The labels, with those as passed in."""

    @property
    def labels(self) -> Tensor:
        """(M,): 1 for targets and 0 for non-targets, or the class; -1 for ignored samples.

        The dtype is int8, or int32 from 128 classes on.
        """
        labels = self.checked
        is_valid = labels.counted & (labels.raw == labels.target)
        dtype = torch.int8 if labels.num_classes < 128 else torch.int32
        return torch.where(is_valid, labels.raw, IGNORED).to(dtype)

    def find_faults(self) -> Sequence[Fault]:
        """Return a `Fault`, the check of one validation rule, for each of `trial_rules`, in that order."""
        if self.scores.ndim == 1:
            num_classes, highest = None, self.scores
        else:
            num_classes, highest = self.checked.num_classes, self.scores.amax(dim=1)
        target_rule, score_rule = trial_rules(num_classes)
        faults = self.checked.find_faults(score_rule, self.scores, highest.isnan())
        label_fault, score_fault, _ = faults
        return label_fault._replace(rule=target_rule), score_fault


def trial_rules(num_classes: int | None) -> tuple[Rule, Rule]:
    """Return the rules of the values of target and preds."""
    of_target = Rule("trial_labels", "target")
    if num_classes is not None:
        of_target = label_rule(num_classes)
    return of_target, Rule("no_nan", "preds")


def flatten_trials(
    preds: Tensor, target: Tensor, *, num_classes: int | None, ignore_index: int | None
) -> TrialBatch:
    """Check shapes and dtypes; flatten scores (N, ...) or (N, C, ...) and labels; do not wait for an accelerator."""
    preds, target, _ = as_tensors(preds, target)
    if num_classes is None:
        check_trials(preds, target)
        scores = preds.reshape(-1)
    else:
        check_scores(preds, target, num_classes)
        scores = preds.movedim(1, -1).reshape(-1, num_classes)
    labels = flatten_labels(target, num_classes or 2, ignore_index, None)
    return TrialBatch(scores, labels)
