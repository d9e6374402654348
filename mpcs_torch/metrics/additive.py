"""AdditiveMetric, the base of Metrics that are functions of sums, and ProbabilityMetric, its form for probabilities."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.labels import Bins, WeightedSum, in_bins
from mpcs_torch.functional.inputs.probabilities import RowTerms, Samples, flatten_samples, row_terms, sample_rules
from mpcs_torch.metrics.base import SumMetric

IntervalRule = Literal["bounded", "mean", "smooth"]
"""The method for the interval of a value. See `mpcs_torch.evaluation.intervals`.

``"bounded"``: a rate or a cost, whose row-wise terms are bounded by `AdditiveMetric.row_ratios`.
``"mean"``: a mean that rare rows can dominate, so intervals allow for one unseen row at the bound of `row_ratios`.
``"smooth"``: any other smooth function of sums.
"""
Scale = Literal["plain", "log", "logit", "atanh"]
"""The scale on which a value is nearly normal: ``"log"`` for positive means, ``"logit"`` for values in [0, 1]."""


class AdditiveMetric(SumMetric):
    """A metric whose value is a function of sums over samples.

    A subclass flattens a batch to samples (`samples_of`), sums them (`sums_of`), and computes the value of sums
    (`value_of`). The states are these sums, named by the fields of ``sums_type``. Intervals come from sums over bins of
    samples, for which `value_of` is vectorized.
    """

    sums_type: ClassVar[Any]
    """The NamedTuple of the sums, whose fields document the states."""
    interval_rule: IntervalRule = "smooth"
    interval_scale: Scale = "plain"
    row_bounds: Sequence[float] = ()
    """The lowest and the highest numerator of a row whose denominator is 1; empty if rows are unbounded."""
    takes_referrals = False
    """Whether decisions may be referrals (-1) or coarse answers."""
    needs_referral_cost = False
    """Whether referrals need a cost in the concern."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        value_rules: Sequence[str],
        state_settings: Sequence[str] | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        """Initialize as `SumMetric`, and declare the states, each of this shape."""
        super().__init__(arguments, value_rules=value_rules, state_settings=state_settings)
        for name in self.sums_type._fields:
            self.add_sum(name, shape=shape)

    @abstractmethod
    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Any:
        """Flatten a batch to samples with a ``find_faults`` method, without reading values on the host."""

    @abstractmethod
    def sums_of(self, samples: Any, /) -> Any:
        """Return the sums of flat samples: a ``sums_type`` of tensors (...), or (B, ...) for binned samples."""

    @abstractmethod
    def value_of(self, sums: Any, /) -> Tensor:
        """Return the value of sums (...), or the values (B,) of sums of bins (B, ...)."""

    def binned_sums(self, preds: Tensor, target: Tensor, bins: Bins, sample_weight: Tensor | None = None) -> Any:
        """Return the sums of each bin of a batch, without validation: tensors (B, ...)."""
        return self.sums_of(in_bins(self.samples_of(preds, target, sample_weight), bins))

    def packed(self, sums: Any) -> Tensor:
        """Flatten the sums of bins, (B, ...) each, to one matrix (B, K)."""
        return torch.cat([field.reshape(len(field), -1) for field in sums], dim=1)

    def unpacked(self, numbers: Tensor) -> Any:
        """Return the sums of bins from a matrix (B, K) of `packed`."""
        shapes = [field.shape for field in self.sums()]
        parts = numbers.split_with_sizes([shape.numel() for shape in shapes], dim=1)
        return self.sums_type(*(part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)))

    def ratio_of(self, sums: Any, whole: Any) -> tuple[Tensor, Tensor]:  # noqa: ARG002  # for subclasses
        """Return numerator and denominator, (B,) each, of the ratio behind the value: by default the first two sums.

        Args:
            sums: The sums of bins.
            whole: The sums of all samples.
        """
        numerator, denominator, *_ = sums
        return numerator, denominator

    def of_ratio(self, ratio: float, whole: Any) -> float:  # noqa: ARG002  # for subclasses
        """Return the value as a monotonic function of the ratio, by default the identity."""
        return ratio

    def row_ratios(self, whole: Any) -> Sequence[tuple[float, float]]:  # noqa: ARG002  # for subclasses
        """Return pairs of numerator and denominator that bound those of any row; empty if rows are unbounded."""
        return [(bound, 1) for bound in self.row_bounds]

    def bin_ratios(self, bins: Any, whole: Any, size: float) -> Sequence[tuple[float, float]]:  # noqa: ARG002
        """Return pairs that bound those of any bin of weight up to ``size``, by default of identical rows."""
        return [(size * numerator, size * per) for numerator, per in self.row_ratios(whole)]

    def averaged_classes(self, sums: Any) -> Tensor | None:  # noqa: ARG002  # for subclasses
        """Return the class weights (B, C) of bins if the value is an average over classes, else None."""
        return None

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        samples = self.samples_of(preds, target, sample_weight)
        self.admit(samples.find_faults)
        self.add(**self.sums_of(samples)._asdict())

    def compute(self) -> Tensor:
        """Return the value of all samples: a float64 scalar."""
        self.check_computable()
        return self.value_of(self.sums())

    def sums(self) -> Any:
        """Return the sums of all samples so far."""
        return self.sums_type(*(getattr(self, name) for name in self.sums_type._fields))


class ProbabilityMetric(AdditiveMetric):
    """A metric of a mean over samples with class probabilities."""

    sums_type = WeightedSum

    def __init__(
        self, arguments: Mapping[str, Any], state_settings: Sequence[str] | None = None, *, shape: tuple[int, ...] = ()
    ) -> None:
        """Initialize from the ``locals()`` of a constructor, with ``num_classes`` and the ``scale`` of the scores."""
        num_classes = arguments["num_classes"]
        check_num_classes(num_classes)
        rules = sample_rules(num_classes, scale=arguments["scale"])
        super().__init__(arguments, value_rules=rules, state_settings=state_settings, shape=shape)

    @abstractmethod
    def term_of(self, samples: Samples, /) -> Tensor:
        """Return the metric's term of each sample: (M,)."""

    def sums_of(self, samples: RowTerms) -> WeightedSum:
        """Return the sums of samples."""
        return samples.summed()

    def value_of(self, sums: WeightedSum) -> Tensor:
        """Return the weighted mean of the terms, NaN without weight."""
        return sums.total / sums.weight

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> RowTerms:
        """Flatten a batch to samples with their terms."""
        settings = self.num_classes, self.scale, self.ignore_index
        return row_terms(flatten_samples(detached(preds), target, *settings, sample_weight), self.term_of)
