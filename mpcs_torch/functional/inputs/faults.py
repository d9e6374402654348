"""Decide which sample an error about a batch names, and which logits look like probabilities.

Broken rules are raised, or counted without waiting for an accelerator.
"""

import warnings
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1


class Fault(NamedTuple):
    """A validation rule for M samples, and which of them violate it."""

    rule: Rule
    values: Tensor
    """(M,) or (M, C): the argument's values, to quote in the error message."""
    broken: Tensor | None
    """(M,), bool: whether each sample violates the rule; None if none can."""


def outside(numbers: Tensor, lowest: float = -inf, highest: float = inf) -> Tensor:
    """Return the mask of the ``numbers`` that are out of range, or NaN."""
    return numbers.clamp(lowest, highest) != numbers


def raise_first(faults: Sequence[Fault]) -> None:
    """Raise an InvalidValueError for the first sample that violates a rule, if any; this waits for an accelerator."""
    for fault in faults:
        if fault.broken is not None and fault.broken.any():
            sample = int(fault.broken.int().argmax())  # the first: argmax of 0 and 1
            value = fault.values[sample]
            column = None
            if value.ndim and value.isnan().any():
                column = int(value.isnan().int().argmax())
            raise fault.rule.broken_by(value.tolist(), sample=sample, column=column)


def count_faults(faults: Sequence[Fault]) -> Tensor:
    """Count the samples that violate each rule, without waiting for an accelerator: int64 (len(faults),)."""
    zero = torch.zeros((), dtype=torch.int64, device=faults[0].values.device)
    counts = [zero if fault.broken is None else fault.broken.sum() for fault in faults]
    return torch.stack(counts)


def raise_for_counts(counts: Tensor, rules: Sequence[Rule]) -> None:
    """Raise an InvalidValueError for the first of ``rules`` with a count above 0; this waits for an accelerator."""
    for rule, count in zip(rules, counts.tolist(), strict=True):
        if count:
            raise rule.broken_by(count=count)


class ProbabilitiesWarning(UserWarning):
    """Scores were passed as logits, but look like probabilities."""


def look_like_probabilities(logits: Tensor) -> bool:
    """Return whether ``logits`` (M, C) are >= 0 and each row sums to 1; False if M = 1: one row may do so by chance."""
    # The first row alone shows that nearly all batches of logits are no probabilities.
    if logits.shape[0] < 2 or logits[0].min() < 0:
        return False
    return bool((logits >= 0).all()) and sums_to_1(logits)


def warn_of_probabilities(logits: Tensor, ignored: Tensor | None = None) -> None:
    """Warn if ``logits`` (M, C) on the CPU look like probabilities, leaving out the ``ignored`` samples (M,)."""
    if not logits.is_cpu or torch.compiler.is_compiling():
        return
    try:
        counted = logits if ignored is None else logits[~ignored]
        is_suspect = look_like_probabilities(counted.detach())
    except RuntimeError:  # inside vmap, values cannot be read
        return
    if is_suspect:
        remedy = "pass from_logits=False where there is such a setting, or their logarithms"
        warnings.warn(
            f"the logits look like probabilities: {remedy}.",
            ProbabilitiesWarning,
            stacklevel=2,
        )
