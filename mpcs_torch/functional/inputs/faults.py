"""Samples whose values break a rule: counted on the device of the data, and reported when that costs no wait."""

import warnings
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1


class Span(NamedTuple):
    """A number of each sample, and the range that it must lie in; NaN lies in none."""

    numbers: Tensor
    """(M,)."""
    lowest: float = -inf
    highest: float = inf

    def is_kept(self) -> bool:
        """Tell whether all numbers lie in the range, by looking at their minimum and maximum alone."""
        if not self.numbers.numel():
            return True
        lowest, highest = self.numbers.aminmax()  # both are NaN if a number is
        return bool(self.lowest <= lowest.item() and highest.item() <= self.highest)

    def broken(self) -> Tensor:
        """Tell which numbers lie outside: (M,), bool."""
        return ~((self.numbers >= self.lowest) & (self.numbers <= self.highest))


def finite(numbers: Tensor) -> Span:
    """Return the range of finite numbers."""
    most = torch.finfo(numbers.dtype).max
    return Span(numbers, -most, most)


class Fault(NamedTuple):
    """One rule for the values of a batch of M samples, and what tells which samples break it."""

    rule: str
    """The name of the argument and its rule, as the error message begins."""
    values: Tensor
    """(M,) or (M, C): the values that the message quotes."""
    spans: Sequence[Span]
    """A sample breaks the rule if one of its numbers lies outside its range; empty if none can."""
    counted: Tensor | None = None
    """(M,), bool: the samples that the rule is for; None for all."""

    def broken(self) -> Tensor:
        """Tell which samples break the rule: (M,), bool."""
        broken = torch.stack([span.broken() for span in self.spans]).any(dim=0)
        return broken if self.counted is None else broken & self.counted

    def raise_if_it_counts(self) -> None:
        """Raise a ValueError that quotes the first sample that counts and breaks the rule, if there is one."""
        broken = self.broken()
        if broken.any():
            sample = int(broken.int().argmax())
            raise ValueError(f"{self.rule}, but sample {sample} has {_quote(self.values[sample])}.")


def raise_first(faults: Sequence[Fault]) -> None:
    """Raise a ValueError that quotes the first value that breaks a rule. This waits for an accelerator."""
    for fault in faults:
        for span in fault.spans:
            if not span.is_kept():
                fault.raise_if_it_counts()


def count_faults(faults: Sequence[Fault]) -> Tensor:
    """Count the samples that break each rule, without waiting for an accelerator: int64 (len(faults),)."""
    none = faults[0].values.new_zeros((), dtype=torch.int64)
    return torch.stack([fault.broken().sum() if fault.spans else none for fault in faults])


def raise_for_counts(counts: Tensor, rules: Sequence[str]) -> None:
    """Raise a ValueError for the first rule that was broken. This waits for an accelerator."""
    for rule, count in zip(rules, counts.tolist(), strict=True):
        if count:
            raise ValueError(f"{rule}, but {count} of the samples since the last reset do not.")


def _quote(value: Tensor) -> str:
    if value.ndim == 0:
        return str(value.item()) if not value.is_floating_point() else f"{value.item():g}"
    shown = ", ".join(f"{entry:g}" for entry in value[:10].tolist())
    return f"[{shown}{', ...' if len(value) > 10 else ''}]"


class ProbabilitiesWarning(UserWarning):
    """Logits that look like probabilities."""


def look_like_probabilities(logits: Tensor) -> bool:
    """Return whether logits (M, C) are all at least 0 with sums of 1; one sample alone may be so by chance."""
    if logits.shape[0] < 2 or not (sums_to_1(logits[0]) and bool((logits[0] >= 0).all())):
        return False
    return bool((logits >= 0).all()) and sums_to_1(logits)


def warn_of_probabilities(logits: Tensor, counted: Tensor | None = None) -> None:
    """Warn if the logits (M, C) of samples that count look like probabilities; an accelerator is not waited for."""
    if not logits.is_cpu or torch.compiler.is_compiling():
        return
    try:
        is_suspect = look_like_probabilities((logits if counted is None else logits[counted]).detach())
    except RuntimeError:  # inside vmap, values cannot be read
        return
    if is_suspect:
        what_to_do = "pass from_logits=False where there is such a setting, or their logarithms"
        warnings.warn(f"the logits look like probabilities: {what_to_do}.", ProbabilitiesWarning, stacklevel=2)
