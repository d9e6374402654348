"""Labels and sample weights of any supported shape as one flat list of samples, which may be in bins."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import Fault, Span, finite

WEIGHT_RULE = "sample_weight must be finite and >= 0"
"""What the values of sample_weight must be, as error messages begin."""


class Bins(NamedTuple):
    """The bin of each of M samples."""

    codes: Tensor
    """(M,), int64, in [0, ``number``)."""
    number: int
    """B, the number of bins, some of which may be empty."""

    def at(self, rows: slice | Tensor) -> "Bins":
        """Return the bins of some of the samples."""
        return Bins(self.codes[rows], self.number)

    def sum(self, values: Tensor) -> Tensor:
        """Sum values (M, ...) over the samples of each bin: (B, ...)."""
        return values.new_zeros(self.number, *values.shape[1:]).index_add_(0, self.codes, values)

    def sum_by(self, codes: Tensor, size: int, values: Tensor) -> Tensor:
        """Sum values (M,) over the samples of each bin and code in [0, size): (B, size)."""
        return add_at(self.codes * size + codes, self.number * size, values).view(self.number, size)


class Labels(NamedTuple):
    """The labels of a batch of M samples, safe to index with even where their values break a rule."""

    target: Tensor
    """(M,), int64, in [0, C): a label outside this range is moved to the nearest class."""
    given: Tensor
    """(M,), int64: the labels as they were given."""
    num_classes: int
    ignored: Tensor | None = None
    """(M,), bool; None if no label is ignored."""
    sample_weight: Tensor | None = None
    """(M,), widest float: as it was given; None stands for 1 everywhere."""
    bins: Bins | None = None
    """The bin of each sample; None if sums are over all of them."""

    @property
    def counted(self) -> Tensor:
        """Return whether a sample is not ignored: (M,), bool."""
        return torch.ones_like(self.given, dtype=torch.bool) if self.ignored is None else ~self.ignored

    @property
    def kept(self) -> Tensor | slice:
        """Return the rows that are not ignored; a slice of all rows, which copies nothing, where none can be."""
        return slice(None) if self.ignored is None else ~self.ignored

    @property
    def weight(self) -> Tensor:
        """Return the weight of each sample, 0 if it is ignored: (M,), widest float."""
        wide = widest_float(self.given.device)
        weight = self.given.new_ones(len(self.given), dtype=wide) if self.sample_weight is None else self.sample_weight
        return weight if self.ignored is None else torch.where(self.ignored, 0.0, weight)

    def at(self, rows: slice) -> "Labels":
        """Return the labels of some of the samples."""
        return Labels(
            self.target[rows],
            self.given[rows],
            self.num_classes,
            None if self.ignored is None else self.ignored[rows],
            None if self.sample_weight is None else self.sample_weight[rows],
            None if self.bins is None else self.bins.at(rows),
        )

    def weighted(self, values: Tensor) -> Tensor:
        """Return values (M,) times the weights of the samples, in the widest float; 0 without weight."""
        values = values.to(widest_float(values.device))
        if self.ignored is None and self.sample_weight is None:
            return values
        weight = self.weight
        return torch.where(weight > 0, values * weight, 0.0)  # 0 would not cancel an infinity

    def sum(self, values: Tensor) -> Tensor:
        """Sum values (M,) times weights over all samples, a scalar, or over those of each bin, (B,)."""
        weighted = self.weighted(values)
        return weighted.sum() if self.bins is None else self.bins.sum(weighted)

    def sum_by(self, codes: Tensor, size: int, values: Tensor) -> Tensor:
        """Sum values (M,) times weights by codes in [0, size): (size,), or (B, size) with bins."""
        weighted = self.weighted(values)
        return add_at(codes, size, weighted) if self.bins is None else self.bins.sum_by(codes, size, weighted)

    def total(self) -> Tensor:
        """Sum the weights over all samples, a scalar, or over those of each bin, (B,)."""
        if self.ignored is None and self.sample_weight is None and self.bins is None:
            return self.given.new_full((), len(self.given), dtype=widest_float(self.given.device))
        weight = self.weight
        return weight.sum() if self.bins is None else self.bins.sum(weight)

    def count_by(self, codes: Tensor, size: int) -> Tensor:
        """Sum the weights by codes in [0, size): (size,), or (B, size) with bins."""
        weight = self.weight
        return add_at(codes, size, weight) if self.bins is None else self.bins.sum_by(codes, size, weight)

    def find_faults(self) -> tuple[Fault, Fault]:
        """Find the samples that break `label_rule`, and those that break `WEIGHT_RULE`."""
        in_range = Span(self.given, 0, self.num_classes - 1)
        counted = None if self.ignored is None else ~self.ignored
        weight = None if self.sample_weight is None else self.weight
        return Fault(label_rule(self.num_classes), self.given, [in_range], counted), find_bad_weights(
            self.given, weight
        )


def add_at(places: Tensor, size: int, values: Tensor) -> Tensor:
    """Sum values (M,) by their places in [0, size): (size,)."""
    return values.new_zeros(size).index_add_(0, places, values)


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
    given = (target if target.ndim == 1 else target.reshape(-1)).long()
    return Labels(
        given.clamp(0, num_classes - 1),
        given,
        num_classes,
        None if ignore_index is None else given == ignore_index,
        flatten_weight(sample_weight, target.shape),
    )


def flatten_weight(sample_weight: Tensor | None, shape: torch.Size) -> Tensor | None:
    """Return the weights of M samples in the widest float, (M,); None stands for 1 everywhere."""
    if sample_weight is None:
        return None
    check_weight_shape(sample_weight, shape)
    return sample_weight.reshape(-1).to(widest_float(sample_weight.device))


def check_weight_shape(sample_weight: Tensor, shape: torch.Size) -> None:
    """Refuse weights that are not one for each sample."""
    if sample_weight.shape != shape:
        raise ValueError(
            f"sample_weight must have shape {tuple(shape)}, one weight for each sample, "
            f"but got {tuple(sample_weight.shape)}."
        )


def find_bad_weights(samples: Tensor, weight: Tensor | None) -> Fault:
    """Find the samples (M, ...) whose weight (M,) breaks `WEIGHT_RULE`."""
    if weight is None:
        return Fault(WEIGHT_RULE, samples, [])
    return Fault(WEIGHT_RULE, weight, [finite(weight)._replace(lowest=0.0)])
