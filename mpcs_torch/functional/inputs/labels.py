"""Labels and sample weights of any shape, flattened to M samples, and their sums. Samples may be divided into bins."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.arrays import at_rows
from mpcs_torch.functional.inputs.checks import widened, widest_float
from mpcs_torch.functional.inputs.faults import Fault, outside

WEIGHT_RULE = Rule("finite_at_least", "sample_weight", minimum=0)


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
        zeros = values.new_zeros(self.number, *values.shape[1:])
        return zeros.index_add_(0, self.codes, values)


class WeightedSum(NamedTuple):
    """A weighted sum of values over samples, and the sum of weights, in the same shape: float64 (float32 on MPS)."""

    total: Tensor
    """The sum of the values, each multiplied by the weight of its sample."""
    weight: Tensor
    """The sum of the weights."""


class Term(NamedTuple):
    """The terms that M samples add to some sums: a number of each sample, times its weight, at one place."""

    place: Tensor | None = None
    """(M,), int64, from 0 to the number of sums - 1; None for a single sum."""
    number: Tensor | None = None
    """(M,); None for 1."""


class Labels(NamedTuple):
    """The labels of M samples, with their weights."""

    target: Tensor
    """(M,), int64: the labels clamped to [0, C), so that invalid labels are valid indices."""
    raw: Tensor
    """The labels as passed in: (M,), int64."""
    num_classes: int
    weight: Tensor
    """The weight of each sample, 0 for ignored samples: (M,), float64 (float32 on MPS)."""
    ignored: Tensor | None = None
    """The mask of ignored samples: (M,), bool; None if no label is ignored."""
    has_unit_weights: bool = False
    """Whether every weight is 1."""

    @property
    def counted(self) -> Tensor:
        """The mask of samples that are not ignored: (M,), bool."""
        if self.ignored is None:
            return torch.ones_like(self.raw, dtype=torch.bool)
        return ~self.ignored

    def at(self, rows: slice | Tensor) -> "Labels":
        """Return the labels of the samples in ``rows``."""
        return at_rows(self, rows)

    def weighted(self, values: Tensor) -> Tensor:
        """Multiply ``values`` (M,) by the sample weights, in float64 (float32 on MPS); infinity times 0 gives 0."""
        if self.has_unit_weights:
            return widened(values)
        if values.dtype == torch.bool:
            return torch.where(values, self.weight, 0.0)
        products = widened(values) * self.weight  # NaN for 0 * inf
        return torch.where(self.weight > 0, products, 0.0)

    def add_up(self, terms: Sequence[Term], width: int, bins: Bins | None = None) -> Tensor:
        """Return the ``width`` sums of each term, one after the other, in one vector (K,), or in (B, K) with B bins."""
        return torch.cat([self._sum(term, width, bins) for term in terms], dim=-1)

    def _sum(self, term: Term, width: int, bins: Bins | None) -> Tensor:
        weighted = self.weight if term.number is None else self.weighted(term.number)
        if term.place is None:
            if bins is None:
                return weighted.sum(0, keepdim=True)
            return bins.sum(weighted).unsqueeze(1)
        if bins is None:
            return Bins(term.place, width).sum(weighted)
        # One number for each pair of a bin and a place.
        places = Bins(bins.codes * width + term.place, bins.number * width)
        return places.sum(weighted).view(bins.number, width)

    def find_faults(self, rule: Rule, preds: Tensor, broken: Tensor) -> Sequence[Fault]:
        """Return a `Fault` for each of `value_rules`; ``broken`` (M,) marks the samples that violate ``rule``."""
        bad_labels = outside(self.raw, 0, self.num_classes - 1)
        if self.ignored is not None:
            bad_labels = bad_labels & ~self.ignored
            broken = broken & ~self.ignored
        label_fault = Fault(label_rule(self.num_classes), self.raw, bad_labels)
        weight_fault = Fault(WEIGHT_RULE, self.weight, None)  # weights of 1 are valid
        if not self.has_unit_weights:
            weight_fault = find_bad_weights(self.weight)
        return label_fault, Fault(rule, preds, broken), weight_fault


def value_rules(num_classes: int, rule: Rule) -> tuple[Rule, Rule, Rule]:
    """Return the rules of the values of target, preds (``rule``) and sample_weight."""
    return label_rule(num_classes), rule, WEIGHT_RULE


def label_rule(num_classes: int) -> Rule:
    """Return the rule of the values of target."""
    return Rule("class_indices", "target", last=num_classes - 1)


def flatten_labels(
    target: Tensor, num_classes: int, ignore_index: int | None, sample_weight: Tensor | None
) -> Labels:
    """Flatten labels (N, ...), clamped to [0, C), and weights to M samples, without waiting for an accelerator."""
    raw = target.reshape(-1).long()
    weight = flatten_weight(sample_weight, target.shape, target.device)
    ignored = None
    if ignore_index is not None:
        ignored = raw == ignore_index
        weight = torch.where(ignored, 0.0, weight)
    has_unit_weights = sample_weight is None and ignored is None
    target = raw.clamp(0, num_classes - 1)
    return Labels(target, raw, num_classes, weight, ignored, has_unit_weights)


def flatten_weight(
    sample_weight: Tensor | None, shape: torch.Size, device: torch.device
) -> Tensor:
    """Check the shape of the sample weights, by default 1, and flatten them: (M,), float64 (float32 on MPS)."""
    if sample_weight is None:
        return torch.ones(shape.numel(), dtype=widest_float(device), device=device)
    check_weight_shape(sample_weight, shape)
    return widened(sample_weight.reshape(-1))


def check_weight_shape(sample_weight: Tensor, shape: torch.Size) -> None:
    """Check that ``sample_weight`` has the shape ``shape``, one weight for each sample."""
    require(
        sample_weight.shape == shape,
        "shape",
        "sample_weight",
        sample_weight,
        shape=tuple(shape),
    )


def find_bad_weights(weight: Tensor) -> Fault:
    """Return a check that ``weight`` (M,) is finite and >= 0."""
    return Fault(WEIGHT_RULE, weight, ~is_weight(weight))


def is_weight(values: Tensor) -> Tensor:
    """Return which of ``values`` are valid weights of rows: finite and at least 0."""
    return (values >= 0) & values.isfinite()
