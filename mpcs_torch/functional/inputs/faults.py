"""Checks of the values of a batch, which raise an error, or count violations without waiting for an accelerator."""

import warnings
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1


class Span(NamedTuple):
    """One number per sample, and the range of valid numbers; NaN is never valid."""

    numbers: Tensor
    """The number of each sample: (M,)."""
    lowest: float = -inf
    highest: float = inf

    def contains_all(self) -> bool:
        """Return whether all numbers are in range, which takes less time than a mask of them."""
        if not self.numbers.numel():
            return True
        lowest, highest = self.numbers.aminmax()  # both are NaN if any number is NaN
        return bool(self.lowest <= lowest.item() and highest.item() <= self.highest)

    def outside(self) -> Tensor:
        """Return the mask of the numbers that are out of range: (M,), bool."""
        return ~((self.numbers >= self.lowest) & (self.numbers <= self.highest))


def finite(numbers: Tensor) -> Span:
    """Return ``numbers`` as a span whose range is all finite values."""
    largest = torch.finfo(numbers.dtype).max
    return Span(numbers, -largest, largest)


class Fault(NamedTuple):
    """A validation rule for M samples, and the numbers of each sample that must be in range under this rule."""

    rule: str
    """The beginning of the error message: the name of the argument and its rule."""
    values: Tensor
    """(M,) or (M, C): the argument's values, to quote in the error message."""
    spans: Sequence[Span]
    """The numbers to check. A sample violates the rule if one of its numbers is out of range; never if empty."""
    counted: Tensor | None = None
    """(M,), bool: the samples to validate; None for all."""

    def broken(self) -> Tensor:
        """Return whether each sample violates the rule: (M,), bool."""
        broken = self.values.new_zeros(len(self.values), dtype=torch.bool)
        for span in self.spans:
            broken = broken | span.outside()
        return broken if self.counted is None else broken & self.counted


def raise_first(faults: Sequence[Fault]) -> None:
    """Raise a ValueError that quotes the first sample that violates a rule, if any; this waits for an accelerator."""
    for fault in faults:
        if all(span.contains_all() for span in fault.spans):
            continue
        broken = fault.broken()
        if broken.any():
            sample = int(broken.int().argmax())
            raise ValueError(f"{fault.rule}, but sample {sample} has {_quote(fault.values[sample])}.")


def count_faults(faults: Sequence[Fault]) -> Tensor:
    """Count the samples that violate each rule, without waiting for an accelerator: int64 (len(faults),)."""
    return torch.stack([fault.broken().sum() for fault in faults])


def raise_for_counts(counts: Tensor, rules: Sequence[str]) -> None:
    """Raise a ValueError for the first of ``rules`` with a count above 0; this waits for an accelerator."""
    for rule, count in zip(rules, counts.tolist(), strict=True):
        if count:
            raise ValueError(f"{rule}, but {count} of the samples since the last reset do not.")


def _quote(value: Tensor) -> str:
    if value.ndim == 0:
        return str(value.item()) if not value.is_floating_point() else f"{value.item():g}"
    shown = ", ".join(f"{entry:g}" for entry in value[:10].tolist())
    return f"[{shown}{', ...' if len(value) > 10 else ''}]"


class ProbabilitiesWarning(UserWarning):
    """Scores were passed as logits, but look like probabilities."""


def look_like_probabilities(logits: Tensor) -> bool:
    """Return whether ``logits`` (M, C) are >= 0 and each row sums to 1; False if M = 1: one row may do so by chance."""
    if logits.shape[0] < 2 or not (sums_to_1(logits[0]) and bool((logits[0] >= 0).all())):
        return False  # one row is enough to tell for nearly all batches
    return bool((logits >= 0).all()) and sums_to_1(logits)


def warn_of_probabilities(logits: Tensor, counted: Tensor | None = None) -> None:
    """Warn if ``logits`` (M, C) on the CPU look like probabilities; if given, ``counted`` (M,) selects the samples."""
    if not logits.is_cpu or torch.compiler.is_compiling():
        return
    try:
        is_suspect = look_like_probabilities((logits if counted is None else logits[counted]).detach())
    except RuntimeError:  # inside vmap, values cannot be read
        return
    if is_suspect:
        remedy = "pass from_logits=False where there is such a setting, or their logarithms"
        warnings.warn(f"the logits look like probabilities: {remedy}.", ProbabilitiesWarning, stacklevel=2)
