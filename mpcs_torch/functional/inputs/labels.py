"""Labels and sample weights of any supported shape as one flat list of samples, which may be in bins."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import Fault

WEIGHT_RULE = "sample_weight must be finite and >= 0"
"""What the values of sample_weight must be, as error messages begin."""


class Bins(NamedTuple):
    """The bin of each of M samples."""

    codes: Tensor
    """(M,), int64, in [0, ``number``)."""
    number: int
    """B, the number of bins, some of which may be empty."""

    def at(self, rows: slice) -> "Bins":
        """Return the bins of some of the samples."""
        return Bins(self.codes[rows], self.number)

    def sum(self, values: Tensor) -> Tensor:
        """Sum values (M, ...) over the samples of each bin: (B, ...)."""
        return values.new_zeros(self.number, *values.shape[1:]).index_add_(0, self.codes, values)

    def sum_by(self, codes: Tensor, size: int, values: Tensor) -> Tensor:
        """Sum values (M,) over the samples of each bin and code in [0, size): (B, size)."""
        cells = values.new_zeros(self.number * size).index_add_(0, self.codes * size + codes, values)
        return cells.view(self.number, size)


class Labels(NamedTuple):
    """The labels of a batch of M samples, safe to index with even where their values break a rule."""

    target: Tensor
    """(M,), int64, in [0, C): a label outside this range is moved to the nearest class."""
    weight: Tensor
    """(M,), widest float: the given sample weight or 1, and 0 for ignored samples."""
    counted: Tensor
    """(M,), bool: False for ignored samples."""
    given: Tensor
    """(M,), int64: the labels as they were given."""
    num_classes: int
    is_unweighted: bool
    """True if neither weights nor a label to ignore were given, so that all weights are 1."""
    ignores: bool
    """True if a label to ignore was given."""
    bins: Bins | None = None
    """The bin of each sample; None if sums are over all of them."""

    @property
    def kept(self) -> Tensor | slice:
        """The rows of samples that are not ignored; a slice of all of them, which copies nothing, where none can be."""
        return self.counted if self.ignores else slice(None)

    def at(self, rows: slice) -> "Labels":
        """Return the labels of some of the samples."""
        return self._replace(
            target=self.target[rows],
            weight=self.weight[rows],
            counted=self.counted[rows],
            given=self.given[rows],
            bins=None if self.bins is None else self.bins.at(rows),
        )

    def sum(self, values: Tensor) -> Tensor:
        """Sum values (M,), already weighted, over all samples, a scalar, or over those of each bin, (B,)."""
        return values.sum() if self.bins is None else self.bins.sum(values)

    def sum_by(self, codes: Tensor, size: int, values: Tensor) -> Tensor:
        """Sum values (M,) by codes in [0, size), such as true classes: (size,), or (B, size) with bins."""
        if self.bins is None:
            return values.new_zeros(size).index_add(0, codes, values)
        return self.bins.sum_by(codes, size, values)

    def find_faults(self) -> tuple[Fault, Fault]:
        """Find the samples that break `label_rule`, and those that break `WEIGHT_RULE`."""
        out_of_range = self.given != self.target
        if self.ignores:
            out_of_range &= self.counted
        return (
            Fault(label_rule(self.num_classes), out_of_range, self.given),
            Fault(WEIGHT_RULE, None, self.weight) if self.is_unweighted else find_bad_weights(self.weight),
        )


def in_bins(samples: Any, bins: Bins) -> Any:
    """Return a batch of samples of any kind, or one that holds such `Labels`, so that its sums are over bins."""
    if hasattr(samples, "labels"):
        return samples._replace(labels=samples.labels._replace(bins=bins))
    return samples._replace(bins=bins)


def label_rule(num_classes: int) -> str:
    """Return what the values of target must be, as error messages begin."""
    return f"target must hold class indices from 0 to {num_classes - 1} (or ignore_index)"


def flatten_labels(
    target: Tensor, *, num_classes: int, ignore_index: int | None, sample_weight: Tensor | None
) -> Labels:
    """Flatten integer labels (N, ...) and their weights without looking at a value."""
    given = target.reshape(-1).long()
    counted = torch.ones_like(given, dtype=torch.bool) if ignore_index is None else given != ignore_index
    weight = flatten_weight(sample_weight, counted, target.shape)
    is_unweighted = ignore_index is None and sample_weight is None
    return Labels(
        given.clamp(0, num_classes - 1), weight, counted, given, num_classes, is_unweighted, ignore_index is not None
    )


def flatten_weight(sample_weight: Tensor | None, counted: Tensor, shape: torch.Size) -> Tensor:
    """Return the weight of each of M samples in the widest float: 1 by default, and 0 for samples that do not count."""
    wide = widest_float(counted.device)
    if sample_weight is None:
        return counted.to(wide)
    if sample_weight.shape != shape:
        raise ValueError(
            f"sample_weight must have shape {tuple(shape)}, one weight for each sample, "
            f"but got {tuple(sample_weight.shape)}."
        )
    return torch.where(counted, sample_weight.reshape(-1).to(wide), 0.0)


def find_bad_weights(weight: Tensor) -> Fault:
    """Find the samples whose weight breaks `WEIGHT_RULE`."""
    return Fault(WEIGHT_RULE, ~(weight.isfinite() & (weight >= 0)), weight)
