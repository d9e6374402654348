"""Detection scores and labels, flattened to trials of one detector, of each class against the rest, or of all classes.

Errors are counted in whole numbers, so that comparisons of rates are exact; there is no ``sample_weight``.
"""

from collections.abc import Callable, Sequence
from math import nan
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import (
    ErrorCounts,
    area_under_roc,
    check_both_occur,
    count_errors,
    missing_kind,
    warn_if_reversed,
)
from mpcs_torch.functional.inputs.arrays import as_tensors, detached
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_num_classes,
    check_scores,
    check_trials,
    widest_float,
)
from mpcs_torch.functional.inputs.faults import Fault, Span, raise_first

ClassAverage = Literal["macro", "micro", "none"]
IGNORED = -1
"""The label of ignored trials."""


class TrialBatch(NamedTuple):
    """A batch of M trials, flattened, with the faults of its values."""

    scores: Tensor
    """(M,), or (M, C) with classes; floating point, in the dtype of the input."""
    labels: Tensor
    """(M,): 1 for targets and 0 for non-targets, or the class; `IGNORED` for ignored trials. int8, or int32 from 128
    classes on."""
    faults: tuple[Fault, ...]
    """One fault for each rule of `trial_rules`, in that order."""


def trial_rules(num_classes: int | None) -> tuple[str, str]:
    """Return the beginnings of the error messages about invalid values of target and preds."""
    classes = (
        "0 for non-targets and 1 for targets" if num_classes is None else f"class indices from 0 to {num_classes - 1}"
    )
    return f"target must hold {classes} (or ignore_index)", "preds must hold no NaN"


def flatten_trials(preds: Tensor, target: Tensor, *, num_classes: int | None, ignore_index: int | None) -> TrialBatch:
    """Check shapes and dtypes, and flatten scores (N, ...) or (N, C, ...) and labels (N, ...).

    An accelerator is not synchronized.
    """
    preds, target, _ = as_tensors(preds, target)
    if num_classes is None:
        check_trials(preds, target)
        scores = preds.reshape(-1)
    else:
        check_scores(preds, target, num_classes)
        scores = preds if preds.ndim == 2 else preds.movedim(1, -1).reshape(-1, num_classes)
    labels, n_labels = target.reshape(-1).long(), 2 if num_classes is None else num_classes
    counted = None if ignore_index is None else labels != ignore_index
    in_range = Span(labels, 0, n_labels - 1)
    is_number = Span(scores if scores.ndim == 1 else scores.amax(dim=1))
    label_rule, score_rule = trial_rules(num_classes)
    faults = Fault(label_rule, labels, [in_range], counted), Fault(score_rule, scores, [is_number], counted)
    is_valid = ~in_range.outside() if counted is None else counted & ~in_range.outside()
    compact = torch.where(is_valid, labels, IGNORED).to(torch.int8 if n_labels < 128 else torch.int32)
    return TrialBatch(scores, compact, faults)


class BinaryTrials(NamedTuple):
    """The trials of one detector; with classes, those of one class against the rest, or of all classes pooled."""

    name: str
    """The end of messages: " of class c", or empty."""
    scores: Tensor
    """The scores: (M,), float64."""
    labels: Tensor
    """The mask of targets: (M,), bool."""

    @property
    def missing(self) -> str | None:
        """The kind of trial that is missing, "targets" or "non-targets", or None."""
        return missing_kind(self.labels)

    @property
    def nan(self) -> Tensor:
        """NaN as a float64 scalar: the value of a statistic if targets or non-targets are missing."""
        return self.scores.new_tensor(nan)

    def errors(self) -> ErrorCounts:
        """Count the errors at each threshold; warn if the scores seem to be reversed."""
        counts = count_errors(self.scores, self.labels)
        warn_if_reversed(area_under_roc(counts), counts, self.name)
        return counts


def check_split(num_classes: int | None, average: str) -> None:
    """Check the number of classes and the average."""
    if num_classes is not None:
        check_num_classes(num_classes)
    check_choice("average", average, ClassAverage)


def split_batch(
    preds: Tensor, target: Tensor, num_classes: int | None, average: ClassAverage, ignore_index: int | None
) -> list[BinaryTrials]:
    """Check a batch of scores (N, ...) or (N, C, ...) and labels (N, ...), and split it into binary trials."""
    check_split(num_classes, average)
    batch = flatten_trials(detached(preds), target, num_classes=num_classes, ignore_index=ignore_index)
    raise_first(batch.faults)
    by_class = split_trials(batch.scores, batch.labels, num_classes, average)
    for trials in by_class:
        check_both_occur(trials.labels, trials.name)
    return by_class


def split_trials(scores: Tensor, labels: Tensor, num_classes: int | None, average: ClassAverage) -> list[BinaryTrials]:
    """Split the scores and labels of a `TrialBatch` into binary trials, without ignored trials."""
    if widest_float(scores.device) != torch.float64:
        scores, labels = scores.cpu(), labels.cpu()
    counted = labels != IGNORED
    if not counted.all():
        scores, labels = scores[counted], labels[counted]
    scores = scores.double()
    if num_classes is None:
        return [BinaryTrials("", scores, labels == 1)]
    is_class = labels.unsqueeze(1) == torch.arange(num_classes, device=labels.device)
    if average == "micro":
        return [BinaryTrials("", scores.flatten(), is_class.flatten())]
    return [BinaryTrials(f" of class {label}", scores[:, label], is_class[:, label]) for label in range(num_classes)]


def stack_classes(values: Sequence[Tensor]) -> Tensor:
    """Stack the values of several classes along a new last dimension; return a single value unchanged."""
    return torch.stack(list(values), dim=-1) if len(values) > 1 else values[0]


def class_values(by_class: Sequence[BinaryTrials], statistic: Callable[[BinaryTrials], Tensor]) -> Tensor:
    """Compute a statistic of each class, and stack the values; NaN if targets or non-targets are missing."""
    return stack_classes([statistic(trials) if trials.missing is None else trials.nan for trials in by_class])


def average_classes(values: Tensor, num_classes: int | None, average: ClassAverage) -> Tensor:
    """Return the mean of ``values`` over the classes, if ``average`` is ``"macro"``; else ``values`` unchanged."""
    return values.mean(dim=-1) if num_classes is not None and average == "macro" else values


def value_of_batch(
    statistic: Callable[[BinaryTrials], Tensor],
    preds: Tensor,
    target: Tensor,
    num_classes: int | None,
    average: ClassAverage,
    ignore_index: int | None,
) -> Tensor:
    """Validate a batch, and compute a statistic of each class, or its mean over the classes."""
    by_class = split_batch(preds, target, num_classes, average, ignore_index)
    return average_classes(class_values(by_class, statistic), num_classes, average)
