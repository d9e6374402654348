"""AdditiveMetric: the base of all Metrics whose value is a function of sums, and its form for probabilities."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.labels import Bins, in_bins
from mpcs_torch.functional.inputs.probabilities import RowTerms, Samples, flatten_samples, row_terms, sample_rules
from mpcs_torch.metrics.base import SumMetric

IntervalRule = Literal["bounded", "mean", "smooth"]
"""The rule for the interval of a value. See `mpcs_torch.evaluation.intervals`.

``"bounded"``: a rate or a cost, of which a row can add no more than `AdditiveMetric.row_ratios` says, however rare.
``"mean"``: a mean over rows, which rare rows may make, so intervals allow for one as bad as `row_ratios` says.
``"smooth"``: any other smooth function of sums.
"""
Scale = Literal["plain", "log", "logit", "atanh"]
"""The scale on which a value is nearly normal: ``"log"`` for positive means, ``"logit"`` for values in [0, 1]."""


class AdditiveMetric(SumMetric):
    """A metric whose value is a function of sums over samples.

    A subclass says how a batch becomes samples (`samples_of`), what they add up to (`sums_of`), and which value sums
    have (`value_of`). The states are these sums, under the names of ``sums_type``. Sums over bins of samples, of which
    `value_of` takes as many as there are, give the value its interval.
    """

    sums_type: ClassVar[Any]
    """The NamedTuple of the sums, which says what each state sums."""
    interval_rule: IntervalRule = "smooth"
    interval_scale: Scale = "plain"
    takes_referrals = False
    """Whether decisions may be referrals (-1) or coarse answers."""
    needs_referral_cost = False
    """Whether a referral must have a cost."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        value_rules: Sequence[str],
        state_settings: Sequence[str] | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        """As `SumMetric`, and declare the states, each of this shape."""
        super().__init__(arguments, value_rules=value_rules, state_settings=state_settings)
        for name in self.sums_type._fields:
            self.add_sum(name, shape=shape)

    @abstractmethod
    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Any:
        """Return a batch as flat samples with a method ``find_faults``, without looking at a value."""

    @abstractmethod
    def sums_of(self, samples: Any) -> Any:
        """Return the sums of flat samples: ``sums_type`` of tensors (...), or (B, ...) if they are in bins."""

    @abstractmethod
    def value_of(self, sums: Any) -> Tensor:
        """Return the value of sums (...), or the values of those of bins (B, ...): (B,)."""

    def binned_sums(self, preds: Tensor, target: Tensor, bins: Bins, sample_weight: Tensor | None = None) -> Any:
        """Return the sums of each bin of a batch, whose values are not checked: tensors (B, ...)."""
        return self.sums_of(in_bins(self.samples_of(preds, target, sample_weight), bins))

    def packed(self, sums: Any) -> Tensor:
        """Return the sums of bins, (B, ...) each, as a row of numbers for each bin: (B, K)."""
        return torch.cat([summed.reshape(len(summed), -1) for summed in sums], dim=1)

    def unpacked(self, numbers: Tensor) -> Any:
        """Return the sums of bins from rows of numbers (B, K)."""
        shapes = [summed.shape for summed in self.sums()]
        parts = numbers.split_with_sizes([shape.numel() for shape in shapes], dim=1)
        return self.sums_type(*(part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)))

    def ratio_of(self, sums: Any, whole: Any) -> tuple[Tensor, Tensor]:  # noqa: ARG002  # for subclasses
        """Return the numerator and the denominator, (B,) each, of the ratio that the value is made of.

        By default the first two sums.

        Args:
            sums: Of bins.
            whole: Of all samples.
        """
        numerator, denominator, *_ = sums
        return numerator, denominator

    def of_ratio(self, ratio: float, whole: Any) -> float:  # noqa: ARG002  # for subclasses
        """Return the value that a ratio stands for, by default the same: a monotonic function."""
        return ratio

    def row_ratios(self, whole: Any) -> Sequence[tuple[float, float]]:  # noqa: ARG002  # for subclasses
        """Return pairs of numerator and denominator that bound those of a row; none if a row can add any number."""
        return ()

    def bin_ratios(self, bins: Any, whole: Any, size: float) -> Sequence[tuple[float, float]]:  # noqa: ARG002
        """Return pairs that bound those of a bin: the largest one has the weight ``size``, by default of equal rows."""
        return [(size * numerator, size * per) for numerator, per in self.row_ratios(whole)]

    def averaged_classes(self, sums: Any) -> Tensor | None:  # noqa: ARG002  # for subclasses
        """Return how much of each class, (B, C), is in bins, if the value is an average over classes."""
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
    """A metric of sums over samples with a probability for each class."""

    def __init__(self, arguments: Mapping[str, Any], state_settings: Sequence[str] | None = None) -> None:
        """Take the ``locals()`` of a constructor, with ``num_classes`` and the ``scale`` of the scores."""
        num_classes = arguments["num_classes"]
        check_num_classes(num_classes)
        rules = sample_rules(num_classes, scale=arguments["scale"])
        super().__init__(arguments, value_rules=rules, state_settings=state_settings)

    @abstractmethod
    def term_of(self, samples: Samples) -> Tensor:
        """Return the number that the metric makes of the scores of each sample: (M,)."""

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> RowTerms:
        """Return a batch as flat samples with these numbers."""
        samples = flatten_samples(
            detached(preds),
            target,
            num_classes=self.num_classes,
            scale=self.scale,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        return row_terms(samples, self.term_of)
