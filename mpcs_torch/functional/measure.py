"""Measures: a metric is defined once, as a function of sums over rows.

A `Measure` says what each row adds to the sums, and how the value follows from them. The function of
`mpcs_torch.functional`, the Metric of `mpcs_torch.metrics`, intervals and comparisons are computed from it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.checks import check_num_classes, widest_float
from mpcs_torch.functional.inputs.decisions import (
    Decisions,
    decision_rule,
    flatten_decisions,
)
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.labels import Bins, Labels, Term, WeightedSum, value_rules
from mpcs_torch.functional.inputs.probabilities import (
    SCORE_RULES,
    Samples,
    Scale,
    flatten_samples,
    input_scale,
)

Direction = Literal["min", "max"]
"""The direction that is better: ``"min"`` if lower values are better, ``"max"`` if higher values are."""
IntervalRule = Literal["bounded", "mean", "smooth"]
"""The method that computes the interval of a value. See `mpcs_torch.evaluation.intervals_and_bounds`.

``"bounded"``: for a rate or a cost that `Measure.row_ratios` bounds for each row (sample).
``"mean"``: for a mean that rare samples can dominate; the interval allows for an unseen sample at the `row_ratios`.
``"smooth"``: for any other smooth function of sums.
"""
Ratios = Sequence[tuple[float, float]]
"""Pairs of a numerator and a denominator."""
RatioOfBins = tuple[Tensor, Tensor]
"""The numerator and the denominator of the value in each of B bins: (B,) each."""


@dataclass(eq=False)
class Measure(ABC):
    """A metric as a function of K sums over rows. The fields of a subclass are the settings of the metric.

    Sums are one vector (K,), float64 (float32 on MPS), so those of batches and processes can be added. `named` splits
    them into the fields of `sums_type`, each of shape `shape`. Rows can be divided into B bins: sums are then (B, K),
    and values (B,).
    """

    sums_type: ClassVar[type[Any]]
    """The NamedTuple of the sums."""
    sums_settings: ClassVar[tuple[str, ...]]
    """The names of the settings that the sums depend on."""
    direction: ClassVar[Direction | None] = "min"
    limits: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    """The lowest and the highest possible value; None where there is no limit."""
    interval_rule: ClassVar[IntervalRule] = "smooth"
    row_limits: ClassVar[Sequence[float]] = ()
    """The lowest and the highest numerator of a row, whose denominator is 1; empty if rows have no limits."""
    has_range: ClassVar[bool] = True
    """Whether what a row can add is limited by the definition, so that requirements have a bound of the value."""
    takes_referrals: ClassVar[bool] = False
    """Whether decisions may be referrals (-1) or coarse answers (sets of classes)."""
    takes_weights: ClassVar[bool] = True
    """Whether rows may have weights."""
    is_wide: ClassVar[bool] = False
    """Whether there are so many sums that they are only kept for all rows, so that the value has no interval."""
    needs_referral_cost: ClassVar[bool] = False
    """Whether referrals are only possible if the concern has a cost of referral."""

    @property
    @abstractmethod
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows, in the order of their faults."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each field of the sums."""
        return ()

    @property
    def width(self) -> int:
        """K, the number of sums."""
        return len(self.sums_type._fields) * prod(self.shape)

    @abstractmethod
    def rows(self, preds: Any, *others: Any) -> Any:
        """Flatten a batch to rows, such as `Decisions`, that have `find_faults`; check shapes and dtypes.

        This does not wait for a GPU.
        """

    @abstractmethod
    def sums(self, rows: Any, bins: Bins | None = None) -> Tensor:
        """Return the sums of all rows, (K,), or of the rows in each of B bins, (B, K)."""

    def value(self, sums: Any) -> Tensor:
        """Return the value of the sums; by default, the quotient of `ratio`."""
        numerator, denominator = self.ratio(sums, sums)
        return numerator / denominator

    def ratio(self, sums: Any, whole: Any) -> RatioOfBins:  # noqa: ARG002  # for subclasses
        """Return the numerator and the denominator of the value in each of B bins, (B,) each.

        ``sums`` are the sums of the bins; its first two fields are the default result. ``whole`` has the total sums.
        """
        numerator, denominator, *_ = sums
        return numerator, denominator

    def value_from_ratio(self, ratio: float, whole: Any) -> float:  # noqa: ARG002  # for subclasses
        """Convert the quotient of `ratio` to the value, by a monotonic function; by default, they are equal."""
        return ratio

    def row_ratios(self, whole: Any) -> Ratios:  # noqa: ARG002  # for subclasses
        """Return the (numerator, denominator) pairs that bound those of any row; empty if there is no bound."""
        return [(limit, 1) for limit in self.row_limits]

    def seen_ratios(self, units: Any) -> Ratios:  # noqa: ARG002  # for subclasses
        """Return pairs as in `row_ratios` from the sums of units, where the definition has no limits; else nothing."""
        return []

    def averaged_classes(self, sums: Any) -> Tensor | None:  # noqa: ARG002  # for subclasses
        """Return the weight (B, C) of the rows of each class in each bin; None unless the value averages classes."""
        return None

    def row_influences(self, slopes: Any, sums: Any) -> tuple[Tensor, Tensor] | None:  # noqa: ARG002  # for subclasses
        """Return how much a row of weight 1 changes a value, given its derivatives by the sums; None without limits.

        Returns:
            (T, D), by the kind of row, such as its true class, and by what is said of it, such as the decision; and the
            weight (B, T) of the rows of each kind in each bin.
        """
        return None

    def named(self, sums: Tensor) -> Any:
        """Split sums (..., K) into the fields of `sums_type`, each of shape (..., `shape`)."""
        leading = sums.shape[:-1]
        by_field = sums.reshape(*leading, len(self.sums_type._fields), *self.shape)
        return self.sums_type(*by_field.unbind(len(leading)))

    def sums_key(self) -> dict[str, Any]:
        """Return what the sums depend on: the settings that change them, and the methods that compute them."""
        methods = [
            getattr(type(self), name, None) for name in ("sums", "terms", "term", "degrees")
        ]
        key: dict[str, Any] = {
            "sums": [method.__qualname__ for method in methods if method is not None]
        }
        for name in self.sums_settings:
            key[name] = getattr(self, name)
        return key

    def fingerprint(self) -> Tensor:
        """Return a hash of `sums_key`: measures with equal sums have the same."""
        return fingerprint(self.sums_key())

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return a copy whose settings that are tensors are moved to another device."""
        moved = {
            name: move(value)
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }
        if not moved:
            return self
        other = copy(self)
        vars(other).update(moved)
        return other

    def on_device_of(self, preds: Tensor) -> Self:
        """Return a copy whose settings are on the device of ``preds``, with a dtype that the device has."""

        def to_device(setting: Tensor) -> Tensor:
            wide = widest_float(preds.device)
            dtype = wide if setting.dtype == torch.float64 else setting.dtype
            return setting.to(preds.device, dtype)

        return self.moved(to_device)

    def __call__(self, preds: Tensor, *others: Tensor | None) -> Tensor:
        """Return the value of a batch, given the arguments of `rows`; this waits for an accelerator."""
        preds = as_tensor(preds, "preds")
        measure = self.on_device_of(preds)
        rows = measure.rows(preds, *others)
        raise_first(rows.find_faults())
        return measure.value_of_rows(rows)

    def value_of_rows(self, rows: Any) -> Tensor:
        """Return the value of flat rows."""
        return self.value(self.named(self.sums(rows)))


class RowMeasure(Measure):
    """A measure to whose sums each row adds a few numbers, each at one place; rows have `Labels`."""

    @abstractmethod
    def terms(self, rows: Any) -> Sequence[Term]:
        """Return what each row adds to each field of the sums."""

    def sums(self, rows: Any, bins: Bins | None = None) -> Tensor:
        """Return the sums of all rows, (K,), or of the rows in each of B bins, (B, K)."""
        labels: Labels = rows.labels
        return labels.add_up(self.terms(rows), prod(self.shape), bins)


@dataclass(eq=False)
class DecisionMeasure(RowMeasure):
    """A measure of decisions: a class or, if ``further`` > 0, also a coarse answer (a set of classes) or a referral."""

    num_classes: int
    ignore_index: int | None = None

    sums_settings: ClassVar[tuple[str, ...]] = ("num_classes", "ignore_index")
    further = 0
    """The number of decisions other than the classes, as in `flatten_decisions`."""

    def __post_init__(self) -> None:
        """Check the number of classes."""
        check_num_classes(self.num_classes)

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        return value_rules(self.num_classes, decision_rule(self.num_classes, self.further))

    def rows(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Decisions:
        """Flatten a batch: ``preds`` are decisions (N, ...) or scores (N, C, ...), the others have shape (N, ...)."""
        return flatten_decisions(
            preds, target, self.num_classes, self.ignore_index, sample_weight, self.further
        )


@dataclass(eq=False)
class ProbabilityMeasure(RowMeasure):
    """A measure that is a function of the mean of a term, which the class probabilities of each row determine."""

    num_classes: int
    from_logits: bool = True
    ignore_index: int | None = None

    sums_type = WeightedSum
    sums_settings: ClassVar[tuple[str, ...]] = (
        "num_classes",
        "from_logits",
        "ignore_index",
    )

    def __post_init__(self) -> None:
        """Check the number of classes."""
        check_num_classes(self.num_classes)

    @property
    def scale(self) -> Scale:
        """The scale of ``preds``."""
        return input_scale(self.from_logits)

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        return value_rules(self.num_classes, SCORE_RULES[self.scale])

    @abstractmethod
    def term(self, samples: Samples) -> Tensor:
        """Return the term of each row: (M,)."""

    def rows(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Samples:
        """Flatten a batch of scores (N, C, ...), labels and weights (N, ...)."""
        return flatten_samples(
            preds, target, self.num_classes, self.scale, self.ignore_index, sample_weight
        )

    def terms(self, rows: Samples) -> Sequence[Term]:
        """Return the term, and 1 for the number of rows."""
        return Term(number=rows.map(self.term)), Term()


def fingerprint(settings: Mapping[str, Any]) -> Tensor:
    """Return a hash of ``settings``: 16 bytes as int64, because torchmetrics may compare states with a tolerance."""
    plain = {key: _plain(value) for key, value in sorted(settings.items())}
    digest = hashlib.sha256(repr(plain).encode()).digest()
    return torch.tensor(list(digest[:16]), dtype=torch.int64)


def _plain(setting: Any) -> Any:
    if not isinstance(setting, Tensor):
        return setting
    if setting.layout == torch.sparse_coo:
        return setting.indices().tolist(), setting.values().tolist()
    values = setting.double() if setting.is_floating_point() else setting
    values = values.detach().cpu().contiguous()
    # The text of a matrix of all pairs of 10 000 classes would take gigabytes, so only its hash is kept.
    digest = hashlib.sha256(values.numpy().data).hexdigest()
    return str(values.dtype), list(values.shape), digest
