"""Labels and sample weights of any shape, flattened to M samples, and their sums. Samples may be divided into bins."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import at_rows
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import Fault, Span, finite

WEIGHT_RULE = "sample_weight must be finite and >= 0"
"""The beginning of the error message about invalid values of sample_weight."""


class Bins(NamedTuple):
    """The bin of each of M samples; every bin gets sums of its own."""

    codes: Tensor
    """(M,), int64: the index of each sample's bin, from 0 to ``number`` - 1."""
    number: int
    """The number of bins, B; some may be empty."""

    def at(self, rows: slice | Tensor) -> "Bins":
        """Return the bins of the samples in ``rows``."""
        return at_rows(self, rows)

    def sum(self, values: Tensor) -> Tensor:
        """Sum ``values`` (M, ...) over the samples of each bin: (B, ...)."""
        return values.new_zeros(self.number, *values.shape[1:]).index_add_(0, self.codes, values)


class WeightedSum(NamedTuple):
    """A weighted sum of values over samples, and the sum of weights, in the same shape: float64 (float32 on MPS)."""

    total: Tensor
    """The sum of the values, each multiplied by the weight of its sample."""
    weight: Tensor
    """The sum of the weights."""


class Term(NamedTuple):
    """The terms that M samples add to some sums: a number of each sample, times its weight, at one place."""

    width: int | None = None
    """The number of sums; None for one sum, as a scalar."""
    place: Tensor | None = None
    """(M,), int64, from 0 to ``width`` - 1; None if ``width`` is None."""
    number: Tensor | None = None
    """(M,); None for 1."""


class Labels(NamedTuple):
    """The labels of M samples, with their weights."""

    target: Tensor
    """(M,), int64: the labels clamped to [0, C), so that invalid labels are valid indices."""
    raw: Tensor
    """The labels as passed in: (M,), int64."""
    num_classes: int
    ignored: Tensor | None = None
    """The mask of ignored samples: (M,), bool; None if no label is ignored."""
    sample_weight: Tensor | None = None
    """The weights: (M,), float64 (float32 on MPS); None if all are 1."""

    @property
    def counted(self) -> Tensor:
        """The mask of samples that are not ignored: (M,), bool."""
        return torch.ones_like(self.raw, dtype=torch.bool) if self.ignored is None else ~self.ignored

    @property
    def weight(self) -> Tensor:
        """The weight of each sample, 0 for ignored samples: (M,), float64 (float32 on MPS)."""
        wide = widest_float(self.raw.device)
        weight = self.raw.new_ones(len(self.raw), dtype=wide) if self.sample_weight is None else self.sample_weight
        return weight if self.ignored is None else torch.where(self.ignored, 0.0, weight)

    def at(self, rows: slice) -> "Labels":
        """Return the labels of the samples in ``rows``."""
        return at_rows(self, rows)

    def weighted(self, values: Tensor) -> Tensor:
        """Multiply ``values`` (M,) by the sample weights, in float64 (float32 on MPS); infinity times 0 gives 0."""
        values = values.to(widest_float(values.device))
        if self.ignored is None and self.sample_weight is None:
            return values
        weight = self.weight
        return torch.where(weight > 0, values * weight, 0.0)  # 0 * inf is NaN

    def add_up(self, terms: Sequence[Term], bins: Bins | None = None) -> Tensor:
        """Return the sums of all terms, one after the other, in one vector (K,), or in (B, K) with B bins."""
        return torch.cat([self._sum(term, bins) for term in terms], dim=-1)

    def _weighted(self, term: Term) -> Tensor:
        return self.weight if term.number is None else self.weighted(term.number)

    def _sum(self, term: Term, bins: Bins | None) -> Tensor:
        weighted = self._weighted(term)
        if term.place is None or term.width is None:
            return weighted.sum().unsqueeze(0) if bins is None else bins.sum(weighted).unsqueeze(1)
        if bins is None:
            return Bins(term.place, term.width).sum(weighted)
        places = Bins(bins.codes * term.width + term.place, bins.number * term.width)
        return places.sum(weighted).view(bins.number, term.width)

    def find_faults(self) -> Sequence[Fault]:
        """Return two `Fault` checks: that labels are class indices, and that weights are finite and >= 0."""
        in_range = Span(self.raw, 0, self.num_classes - 1)
        counted = None if self.ignored is None else ~self.ignored
        weight = None if self.sample_weight is None else self.weight
        label_fault = Fault(label_rule(self.num_classes), self.raw, [in_range], counted)
        return label_fault, find_bad_weights(self.raw, weight)


def label_rule(num_classes: int) -> str:
    """Return the beginning of the error message about invalid values of target."""
    return f"target must hold class indices from 0 to {num_classes - 1} (or ignore_index)"


def flatten_labels(target: Tensor, num_classes: int, ignore_index: int | None, sample_weight: Tensor | None) -> Labels:
    """Flatten labels (N, ...), clamped to [0, C), and weights to M samples, without waiting for an accelerator."""
    raw = target.reshape(-1).long()
    return Labels(
        raw.clamp(0, num_classes - 1),
        raw,
        num_classes,
        None if ignore_index is None else raw == ignore_index,
        flatten_weight(sample_weight, target.shape),
    )


def flatten_weight(sample_weight: Tensor | None, shape: torch.Size) -> Tensor | None:
    """Check the shape of the sample weights, and flatten them: (M,), float64 (float32 on MPS); None stays None."""
    if sample_weight is None:
        return None
    check_weight_shape(sample_weight, shape)
    return sample_weight.reshape(-1).to(widest_float(sample_weight.device))


def check_weight_shape(sample_weight: Tensor, shape: torch.Size) -> None:
    """Check that ``sample_weight`` has the shape ``shape``, one weight for each sample."""
    if sample_weight.shape != shape:
        raise ValueError(
            f"sample_weight must have shape {tuple(shape)}, one weight for each sample, "
            f"but got {tuple(sample_weight.shape)}."
        )


def find_bad_weights(samples: Tensor, weight: Tensor | None) -> Fault:
    """Return a check that ``weight`` (M,) is finite and >= 0; the check always passes if ``weight`` is None."""
    if weight is None:
        return Fault(WEIGHT_RULE, samples, [])
    return Fault(WEIGHT_RULE, weight, [finite(weight)._replace(lowest=0.0)])
