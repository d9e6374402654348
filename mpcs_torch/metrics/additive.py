"""AdditiveMetric, the base of metrics that are functions of sums over samples, and two subclasses as further bases."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, decision_rules, flatten_decisions
from mpcs_torch.functional.inputs.labels import Bins, WeightedSum, in_bins
from mpcs_torch.functional.inputs.probabilities import (
    RowTerms,
    Samples,
    flatten_samples,
    input_scale,
    row_terms,
    sample_rules,
)
from mpcs_torch.metrics.base import SumMetric

IntervalRule = Literal["bounded", "mean", "smooth"]
"""The method that computes the interval of a value. See `mpcs_torch.evaluation.intervals`.

``"bounded"``: for a rate or a cost that `AdditiveMetric.row_ratios` bounds for each row (sample).
``"mean"``: for a mean that rare samples can dominate; the interval allows for an unseen sample at the `row_ratios`.
``"smooth"``: for any other smooth function of sums.
"""
Scale = Literal["plain", "log", "logit", "atanh"]
"""The scale on which a value is almost normally distributed, such as ``"log"`` if it is positive."""


class AdditiveMetric(SumMetric):
    """A metric whose value is a function of sums over samples.

    A subclass flattens a batch to samples (`samples_from_batch`), sums the samples (`sum_samples`), and computes the
    value from the sums (`value_from_sums`). The states are these sums, named by the fields of ``sums_type``. To compute
    intervals, samples are divided into bins and summed in each bin; `value_from_sums` then gets the sums of all bins.
    """

    sums_type: ClassVar[Any]
    """The NamedTuple class of the sums; its fields document the states."""
    interval_rule: IntervalRule = "smooth"
    interval_scale: Scale = "plain"
    row_bounds: Sequence[float] = ()
    """The lowest and the highest numerator of a sample, whose denominator is 1; empty if samples are unbounded."""
    takes_referrals = False
    """Whether decisions may be referrals (-1) or coarse answers (sets of classes)."""
    needs_referral_cost = False
    """Whether referrals are only possible if the concern has a cost of referral."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        value_rules: Sequence[str],
        state_settings: Sequence[str] | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        """Initialize as `SumMetric`, and declare the states, each with shape ``shape``."""
        super().__init__(arguments, value_rules=value_rules, state_settings=state_settings)
        for name in self.sums_type._fields:
            self.add_sum(name, shape=shape)

    @abstractmethod
    def samples_from_batch(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Any:
        """Return the flat samples of a batch, in an object with a method ``find_faults``; do not wait for a GPU."""

    @abstractmethod
    def sum_samples(self, samples: Any, /) -> Any:
        """Return the sums as a ``sums_type``: tensors (...), or (B, ...) if ``samples`` are divided into B bins."""

    def value_from_sums(self, sums: Any, /) -> Tensor:
        """Return the value of ``sums``, or (B,) for sums of B bins; by default, the quotient of `ratio_from_sums`."""
        numerator, denominator = self.ratio_from_sums(sums, sums)
        return numerator / denominator

    def binned_sums(self, preds: Tensor, target: Tensor, bins: Bins, sample_weight: Tensor | None = None) -> Any:
        """Return the sums of a batch in each of B bins, without validation: tensors (B, ...)."""
        return self.sum_samples(in_bins(self.samples_from_batch(preds, target, sample_weight), bins))

    def packed(self, sums: Any) -> Tensor:
        """Return ``sums``, whose tensors have shapes (B, ...) for B bins, as one matrix (B, K)."""
        return torch.cat([field.reshape(len(field), -1) for field in sums], dim=1)

    def unpacked(self, numbers: Tensor) -> Any:
        """Return the sums of B bins from the matrix (B, K) that `packed` returned."""
        shapes = [field.shape for field in self.sums()]
        parts = numbers.split_with_sizes([shape.numel() for shape in shapes], dim=1)
        return self.sums_type(*(part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)))

    def ratio_from_sums(self, sums: Any, whole: Any) -> tuple[Tensor, Tensor]:  # noqa: ARG002  # for subclasses
        """Return the numerator and the denominator of the value in each of B bins, (B,) each.

        ``sums`` are the sums of the bins; its first two fields are the default result. ``whole`` has the total sums.
        """
        numerator, denominator, *_ = sums
        return numerator, denominator

    def value_from_ratio(self, ratio: float, whole: Any) -> float:  # noqa: ARG002  # for subclasses
        """Convert the ratio of `ratio_from_sums` to the value, by a monotonic function; by default, they are equal."""
        return ratio

    def row_ratios(self, whole: Any) -> Sequence[tuple[float, float]]:  # noqa: ARG002  # for subclasses
        """Return the (numerator, denominator) pairs that bound those of any sample; empty if there is no bound."""
        return [(bound, 1) for bound in self.row_bounds]

    def bin_ratios(self, bins: Any, whole: Any, size: float) -> Sequence[tuple[float, float]]:  # noqa: ARG002
        """Return the pairs that bound those of any bin of weight ``size``, as in `row_ratios`; ``bins`` are sums."""
        return [(size * numerator, size * per) for numerator, per in self.row_ratios(whole)]

    def averaged_classes(self, sums: Any) -> Tensor | None:  # noqa: ARG002  # for subclasses
        """Return the weight (B, C) of the samples of each class in each bin; None unless the value averages classes."""
        return None

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        samples = self.samples_from_batch(preds, target, sample_weight)
        self.admit(samples.find_faults)
        self.add(**self.sum_samples(samples)._asdict())

    def compute(self) -> Tensor:
        """Return the value of all samples: a float64 scalar."""
        self.check_computable()
        return self.value_from_sums(self.sums())

    def sums(self) -> Any:
        """Return the sums of all samples so far."""
        return self.sums_type(*(getattr(self, name) for name in self.sums_type._fields))


class ProbabilityMetric(AdditiveMetric):
    """A metric that is a function of the mean of a term, which each sample's class probabilities determine."""

    sums_type = WeightedSum

    def __init__(
        self, arguments: Mapping[str, Any], state_settings: Sequence[str] | None = None, *, shape: tuple[int, ...] = ()
    ) -> None:
        """Initialize from the ``locals()`` of a constructor, which must include ``num_classes`` and ``from_logits``."""
        num_classes, scale = arguments["num_classes"], arguments.get("scale", input_scale(arguments["from_logits"]))
        check_num_classes(num_classes)
        rules = sample_rules(num_classes, scale=scale)
        super().__init__({**arguments, "scale": scale}, value_rules=rules, state_settings=state_settings, shape=shape)

    @abstractmethod
    def term_from_samples(self, samples: Samples, /) -> Tensor:
        """Return the term of each sample: (M,)."""

    def sum_samples(self, samples: RowTerms) -> WeightedSum:
        """Return the weighted sum of the terms, and the sum of the weights."""
        return samples.summed()

    def samples_from_batch(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> RowTerms:
        """Return the samples of a batch with their terms."""
        settings = self.num_classes, self.scale, self.ignore_index
        return row_terms(flatten_samples(detached(preds), target, *settings, sample_weight), self.term_from_samples)


class DecisionMetric(AdditiveMetric):
    """A metric of decisions: a class or, if ``further`` > 0, also a coarse answer (a set of classes) or a referral."""

    further = 0
    """The number of decisions other than the classes, as in `flatten_decisions`."""

    def __init__(
        self, arguments: Mapping[str, Any], shape: tuple[int, ...] = (), *, further_settings: Sequence[str] = ()
    ) -> None:
        """Initialize from a constructor's ``locals()``. Metrics share states only if ``further_settings`` are equal."""
        num_classes = arguments["num_classes"]
        check_num_classes(num_classes)
        rules = decision_rules(num_classes, arguments.get("further", 0))
        settings = ("num_classes", "ignore_index", *further_settings)
        super().__init__(arguments, value_rules=rules, state_settings=settings, shape=shape)

    def samples_from_batch(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Decisions:
        """Flatten a batch: ``preds`` are decisions (N, ...) or scores (N, C, ...), the others have shape (N, ...)."""
        return flatten_decisions(preds, target, self.num_classes, self.ignore_index, sample_weight, self.further)
