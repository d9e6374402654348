"""How much each unit changes a value, to first order: the influences from which intervals, bounds and differences come.

A unit is a row, a trial, or a cluster of these. To first order, a value is the mean of what its units add.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.evaluation.reasons import NO_RANGE, NO_VALUE, Reason
from mpcs_torch.functional.measure import DecisionMeasure, Measure

Pair = tuple[float, float]
"""The numbers that a row or a unit adds to the numerator and to the denominator of a ratio."""


MAX_SEARCHED_CLASSES = 2000
"""The largest number of classes of which all pairs are searched for the worst error."""


HALVES = 8
"""The number of pairs of random halves of the units from which the bias is estimated."""


RARELY = 1 / 3
"""The share of the way from the mean to its limit at which a further row is, if hardly any row is at the limit: so for
areas, scores of soft labels, and means such as MPCS, to which a surely wrong row adds 20 times as much as a usual row.
With a row at the limit, intervals of 300 rows would be up to four times as wide as those of a bootstrap."""


RATE = [(0, 1), (1, 1)]
"""The pairs that a row may add to a rate: 0 or 1 to the numerator, and 1 to the denominator."""


class IndependentUnits(NamedTuple):
    """The sizes of U units."""

    rows: Tensor
    """(U,): the number of rows in each unit."""
    counts: Tensor
    """(U,): the number of equal units that each element stands for: 1, except for the cells of a confusion matrix."""
    cluster: str | None
    """The name of the column of clusters; None if rows are independent."""
    weights: Tensor | None = None
    """(U,): the sum of the weights of the rows in each unit; None if all rows have the same weight."""
    word: str = "rows"
    """The word for independent rows in messages."""
    heaviest: float = 0.0
    """The largest weight of a unit in all groups, which a further unit of any group may have; 0 without weights."""
    usual_weight: float = 0.0
    """The usual weight of a further row of any group; 0 without weights, and for clusters."""
    class_weights: Tensor | None = None
    """(C,): the weight of a row of each class; None if rows of a class have different weights, or none."""

    @property
    def name(self) -> str:
        """The word for units in messages: "rows", "trials" or "clusters"."""
        return self.word if self.cluster is None else "clusters"

    @property
    def number(self) -> float:
        """The number of units."""
        return self.counts.sum().item()

    @property
    def sizes(self) -> Tensor:
        """(U,): the weight of each unit; without weights, its number of rows."""
        return self.rows if self.weights is None else self.weights

    @property
    def are_rows(self) -> bool:
        """Whether each unit is one row without a weight, as is each further one."""
        has_weights = self.weights is not None or self.heaviest > 1
        return not has_weights and (self.cluster is None or self.largest == 1)

    @property
    def largest(self) -> float:
        """The largest size of a unit; 1 for independent rows without weights, also if several are added up."""
        is_one = self.cluster is None and self.weights is None
        return 1.0 if is_one else self.sizes.max().item()

    @property
    def mean_weight(self) -> float:
        """The mean weight of a row."""
        return ((self.counts @ self.sizes) / (self.counts @ self.rows)).item()

    def usual(self, sizes: Tensor) -> Tensor:
        """Return the usual size of a further unit, (...), from ``sizes`` (U, ...), such as those of a class.

        It is a mean size in which units count by their squared sizes, because the error of a value does so, too: if few
        units have most of the weight, it is nearly theirs.
        """
        of_further = sizes
        if self.cluster is None and bool((self.rows > 1).any()):
            # Independent rows were added up to units, but a further unit is a single row, of their mean weight.
            weight = self.sizes / self.rows
            of_further = weight.reshape(-1, *[1] * (sizes.ndim - 1)).expand_as(sizes)
        squares = sizes * of_further
        total: Tensor = torch.tensordot(self.counts, squares, 1)
        cubes: Tensor = torch.tensordot(self.counts, squares * of_further, 1)
        return cubes / total.clamp(min=1e-300)

    def usual_of_kinds(self, kinds: Tensor) -> Tensor:
        """Return the usual weight of the rows of each kind in a further unit, (T,), from those of each unit (U, T).

        If weights do not depend on the class, a row of a class may have the usual weight of any row.
        """
        usual = self.usual(kinds)
        if self.class_weights is not None:
            return usual
        return usual.clamp(min=self.usual_weight)

    def of_classes(self, is_counted: Tensor) -> "IndependentUnits":
        """Return these units for a rate of the rows of some classes, (C,) bool, which may have other weights."""
        if self.cluster is not None:
            return self._replace(heaviest=0.0)
        if self.class_weights is None:
            return self
        heaviest = self.class_weights[is_counted].max().item()
        return self._replace(heaviest=heaviest, usual_weight=0.0)

    def too_few(self, least: int) -> Reason | None:
        """Return the reason if there are fewer than ``least`` units, by their number or by their effective number."""
        if self.number < least:
            return Reason("few_units", self.name, least)
        if self.weights is None:
            return None
        # Kish's effective sample size
        squares = self.counts @ self.sizes.square()
        effective = (self.counts @ self.sizes).square() / squares.clamp(min=1e-300)
        return Reason("few_effective", self.name, least) if effective < least else None


class Ratio(NamedTuple):
    """A value as a monotonic function of the ratio of two sums over units."""

    numerator: Tensor
    """(U,)"""
    per: Tensor
    """(U,): the denominator."""
    of_rows: Sequence[Pair]
    """The pairs that bound what a row of weight 1 adds."""
    to_value: Callable[[float], float]
    is_rising: bool = True
    """Whether the value rises with the ratio."""
    is_mean: bool = False
    """Whether a row may add much more than rows usually do, as to a mean loss: then a further row is `RARELY` at the
    limit, and the other rows of a further cluster are as bad as in the worst cluster seen."""

    @property
    def is_rate(self) -> bool:
        """Whether a row adds 0 or 1 to the numerator, and 1 to the denominator."""
        return list(self.of_rows) == RATE


class Influences(NamedTuple):
    """A value, and how much each unit, and a further row, changes it, to first order."""

    value: float
    of_units: Tensor
    """(U,): the influence of each unit; the sum over all units is 0."""
    units: IndependentUnits
    added: Tensor | None = None
    """(U,): what each unit adds to the value; None if the value is no sum of such numbers."""
    measured: tuple[Measure, Any] | None = None
    """The measure whose value it is, and the sums of the units; None if the value is no function of sums."""
    of_rows: Tensor | None = None
    """(T, 2): the lowest and the highest influence of a row of weight 1, by true class or kind of row; (1, 2) if these
    do not matter; None if it has no limits."""
    usual_error: Tensor | None = None
    """(T, 2): the influence of a row of each class that is right, and of one that is wrong in the usual way; None if
    these are not known."""
    class_sizes: Tensor | None = None
    """(T,): the usual weight of the rows of each class in a further unit; None if classes do not matter."""
    ratio: Ratio | None = None
    limits: tuple[float | None, float | None] = (None, None)
    """The lowest and the highest possible value."""
    has_bound: bool = True
    """Whether ``of_rows`` holds for any row, not only for usual ones."""
    further_share: float = 1.0
    """The factor of ``of_rows`` for the further unit of an interval: below 1 if hardly any row is the worst one."""
    bias: float = 0.0
    """The mean value on random halves of the units, minus the value."""
    is_chosen: bool = False
    """Whether units are weighted by numbers that were chosen on them, such as a threshold: sign flips are no test."""

    def clipped(self, value: float) -> float:
        """Return ``value`` within the limits."""
        low, high = self.limits
        return max(-inf if low is None else low, min(value, inf if high is None else high))


class Unknown(NamedTuple):
    """A value, and the reason why nothing is known of its error."""

    value: float
    reason: Reason
    has_range: bool = True
    """Whether the definition of the metric limits what a row can add."""

    @property
    def no_bound(self) -> Reason:
        """The reason why the value has no bound."""
        return self.reason if self.has_range else NO_RANGE


Estimate = Influences | Unknown
"""A value and its influences, or why these are not known. All intervals, bounds and differences come from it."""


def of_sums(measure: Measure, sums: Any, units: IndependentUnits) -> Estimate:
    """Return the value of a measure with its influences.

    ``sums`` has the sums of the units: a ``sums_type`` of the measure, with tensors (U, ...).
    """
    whole = total_sums(sums, units)
    computed = measure.value(whole)
    is_scalar = isinstance(computed, Tensor) and computed.numel() == 1
    require(is_scalar, "computes_scalar", "metric", computed)
    value = computed.item()
    if not isfinite(value):
        return Unknown(value, NO_VALUE)
    if measure.interval_rule != "smooth":
        return _of_ratio(measure, sums, whole, units, value)
    by_class = measure.averaged_classes(sums)
    if by_class is not None:
        of_classes = torch.tensordot(units.counts, by_class, 1)
        if bool((of_classes == 0).any()):
            return Unknown(value, Reason("absent_class"))
    slopes = slopes_of(measure, whole)
    influences = Influences(
        value,
        applied(slopes, sums),
        units,
        measured=(measure, sums),
        limits=measure.limits,
        has_bound=measure.has_range,
        bias=0.0 if by_class is None else bias(measure, sums, units),
    )
    if isinstance(measure, DecisionMeasure) and measure.num_classes > MAX_SEARCHED_CLASSES:
        return Unknown(value, Reason("many_classes", number=MAX_SEARCHED_CLASSES))
    of_row = measure.row_influences(slopes, sums)
    if of_row is None:
        return influences
    cells, kinds = of_row
    # A value that no row changes is one by convention, such as an MCC of 0 if all decisions are of one class. A further
    # row would change it much more than to first order.
    if not bool(cells.any()):
        return Unknown(value, Reason("by_convention"), measure.has_range)
    influences = influences._replace(
        of_rows=torch.stack([cells.amin(1), cells.amax(1)], 1),
        class_sizes=units.usual_of_kinds(kinds),
    )
    if not isinstance(measure, DecisionMeasure):
        return influences._replace(further_share=RARELY)
    right = cells.diagonal()
    wrong = (cells.sum(1) - right) / max(1, len(cells) - 1)
    return influences._replace(usual_error=torch.stack([right, wrong], 1))


def _of_ratio(
    measure: Measure, sums: Any, whole: Any, units: IndependentUnits, value: float
) -> Estimate:
    numerator, per = measure.ratio(sums, whole)
    total = (units.counts @ per).item()
    if not total > 0:
        return Unknown(value, Reason("by_convention"))
    ratio = (units.counts @ numerator).item() / total
    slope = slope_of_ratio(measure, whole, ratio)
    influences = Influences(
        value,
        slope * (numerator - ratio * per) / total,
        units,
        measured=(measure, sums),
        limits=measure.limits,
        has_bound=measure.has_range,
    )
    pairs = measure.row_ratios(whole) or measure.seen_ratios(sums)
    if not pairs:
        return influences
    of_pairs = [slope * (num - ratio * den) / total for num, den in pairs]
    of_rows = torch.tensor([[min(of_pairs), max(of_pairs)]], dtype=torch.float64)
    is_mean = measure.interval_rule == "mean"
    return influences._replace(
        of_rows=of_rows,
        usual_error=None if is_mean else of_rows,
        class_sizes=units.usual(units.sizes).reshape(1),
        ratio=Ratio(
            numerator,
            per,
            pairs,
            to_value=lambda changed: measure.value_from_ratio(changed, whole),
            is_rising=slope >= 0,
            is_mean=is_mean,
        ),
    )


def slopes_of(measure: Measure, whole: Any) -> Any:
    """Return the derivatives of the value by each of the sums ``whole``, in the type of these."""
    leaves = [total.detach().clone().requires_grad_() for total in whole]
    value = measure.value(type(whole)(*leaves))
    slopes = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return type(whole)(*slopes)


def applied(slopes: Any, sums: Any) -> Tensor:
    """Return, for each unit, the sum of its ``sums``, each times its slope: (U,)."""
    by_field = list[Tensor]()
    for of_units, slope in zip(sums, slopes, strict=True):
        changes = of_units * slope.nan_to_num(0.0)
        by_field.append(changes.reshape(len(changes), -1).sum(1))
    return torch.stack(by_field).sum(0)


def slope_of_ratio(measure: Measure, whole: Any, ratio: float) -> float:
    """Return the derivative of the metric's value by the ``ratio`` numerator / denominator."""
    step = 1e-5
    low = measure.value_from_ratio(ratio - step, whole)
    high = measure.value_from_ratio(ratio + step, whole)
    return (high - low) / (2 * step)


def bias(measure: Measure, sums: Any, units: IndependentUnits) -> float:
    """Return how much lower or higher a value is on average on random halves of the units.

    This is its bias for all units, if the bias falls as 1 / their number.
    """
    whole = total_sums(sums, units)
    generator = torch.Generator().manual_seed(0)
    signs = (
        torch.randint(2, (HALVES, len(units.counts)), generator=generator).double() * 2 - 1
    )
    # A half counts a unit twice or not at all: its sums are those of all units, plus or minus those of each unit. Of n
    # equal units, a half has about the square root of n too many or too few.
    changes = [torch.tensordot(signs * units.counts.sqrt(), each, 1) for each in sums]
    halves = list[Tensor]()
    for sign in (-1, 1):
        totals = zip(whole, changes, strict=True)
        of_half = [total + sign * change for total, change in totals]
        halves.append(measure.value(type(whole)(*of_half)))
    return (torch.cat(halves).nanmean() - measure.value(whole)).nan_to_num(0.0).item()


def total_sums(sums: Any, units: IndependentUnits) -> Any:
    """Return the sums over all units, in the type of ``sums``; each element stands for ``units.counts`` equal units."""
    totals = [torch.tensordot(units.counts, of_units, 1) for of_units in sums]
    return type(sums)(*totals)
