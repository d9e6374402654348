"""`ConcernRange`: costs that are known only as ranges, or that differ between people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpcs_torch.concern.checks import ConcernError, Problem, problem
from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import quoted

if TYPE_CHECKING:
    from torch import Tensor


class UncertainCost(NamedTuple):
    """A cost that is only known as a range, from ``low`` to ``high``."""

    name: str
    """The name of the cost in sentences, such as "taking red for green"."""
    cells: list[tuple[int, int]]
    """The rows and columns of this cost in the cost matrix; several if one number, such as a factor, sets them."""
    low: float
    high: float


@dataclass(frozen=True)
class ConcernRange:
    """Describe a set of costs: ranges, the `ConcernSpec` of several people, or the ranges of several people.

    The set contains all costs between the low and the high costs of each person, and all mixtures of the costs of
    several people. Ranges are independent of each other, but a factor has the same value for all released errors, and a
    single referral cost has the same value for all classes. Costs of coarse answers (decisions for a set of classes)
    depend on other costs, but here they vary independently. So statements about all costs are valid but conservative.

    All people must use the same unit, for example dollars. In a spec with a factor, a dangerous error costs 1.

    Args:
        low: The lowest costs of each person.
        high: The highest costs of each person, with the same classes, released (tolerable) pairs and coarse answers.

    Raises:
        ConcernError: If there are no specs, or a low cost is above its high cost. Specs must also agree in classes,
            class groups, coarse answers, concession, and whether a referral has a cost.

    Example:
        >>> low, high = (ConcernSpec(["ill", "healthy"], weights=[[0, miss], [1, 0]]) for miss in (5, 20))
        >>> costs = ConcernRange([low], [high])
        >>> costs.middle.weights
        ((0.0, 12.5), (1.0, 0.0))
    """

    low: tuple[ConcernSpec, ...]
    high: tuple[ConcernSpec, ...]

    def __init__(self, low: Sequence[ConcernSpec], high: Sequence[ConcernSpec]) -> None:
        object.__setattr__(self, "low", tuple(low))
        object.__setattr__(self, "high", tuple(high))
        first = next(_find_problems(self.low, self.high), None)
        if first is not None:
            raise ConcernError([first])

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make this range again: by its constructor, so that a changed pickle gives no invalid range."""
        return range_from_fields, (self.low, self.high)

    @classmethod
    def from_people(cls, people: Mapping[str, ConcernSpec | ConcernRange]) -> ConcernRange:
        """Combine the costs of several people, with or without ranges; ``people`` maps names to costs.

        Raises:
            ConcernError: If the costs of these people cannot form a `ConcernRange`.

        Example:
            >>> anna, ben = (ConcernSpec(2, weights=[[0, miss], [1, 0]]) for miss in (5, 20))
            >>> low, high = ConcernRange.from_people({"anna": anna, "ben": ben}).bounds()
            >>> low[:, 0, 1].tolist()
            [5.0, 20.0]
        """
        low = list[ConcernSpec]()
        high = list[ConcernSpec]()
        for costs in people.values():
            if isinstance(costs, ConcernRange):
                low += costs.low
                high += costs.high
            else:
                low.append(costs)
                high.append(costs)
        return cls(low, high)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes in index order."""
        return self.low[0].classes

    @property
    def is_known(self) -> bool:
        """Whether no cost is a range and all people agree, so that `middle` is the only possible spec."""
        return all(spec == self.low[0] for spec in self._specs)

    @property
    def _specs(self) -> tuple[ConcernSpec, ...]:
        """The low and the high costs of all people."""
        return (*self.low, *self.high)

    @property
    def middle(self) -> ConcernSpec:
        """The arithmetic mean of the low and high costs of all people, for results that need a single cost per error.

        An error is dangerous here if it is dangerous for at least one person.
        """
        specs = self._specs
        first = specs[0]
        if self.is_known:
            return first
        prices = self._mean_prices()
        if self._shares_releases():
            return replace(first, factor=fmean(spec.factor for spec in specs), **prices)
        weights = np.mean([spec.mpcs_weights_array() for spec in specs], axis=0)
        np.fill_diagonal(weights, 0)
        dangerous: Any = first.dangerous
        are_alike = all(
            spec.weights is not None and spec.dangerous == dangerous for spec in specs
        )
        # A minimum weight may be reached by a high cost, but not by the mean.
        if first.dangerous_weight is not None or not are_alike:
            is_dangerous = np.any([spec.dangerous_array() for spec in specs], axis=0)
            dangerous = np.argwhere(is_dangerous).tolist()
        return replace(
            first,
            releases=(),
            factor=0.5,
            weights=weights.tolist(),
            dangerous=dangerous,
            **prices,
        )

    def _mean_prices(self) -> dict[str, Any]:
        """Return the mean costs of coarse answers and of a referral, as arguments of `ConcernSpec`."""
        specs = self._specs
        names = [name for name, _ in specs[0].answers]
        prices = np.mean([[cost for _, cost in spec.answers] for spec in specs], axis=0)
        means: dict[str, Any] = {"answers": tuple(zip(names, prices.tolist(), strict=True))}
        referrals = [spec.refer for spec in specs if spec.refer is not None]
        if referrals:
            # Some people may have one cost, and others a cost for each class.
            means["refer"] = np.mean(np.broadcast_arrays(*referrals), axis=0).tolist()
        return means

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper costs of V boxes, float64 (V, C, K) each, for K decisions.

        A box is the set of all costs between its lower and upper costs. The convex hull of the boxes has all costs.
        In a box, a factor, or one referral cost for all classes, is fixed at its lowest or its highest value. With
        coarse answers, V is 1. `mpcs_torch.functional.mean_cost_range` takes the boxes.
        """
        import torch

        boxes = list[tuple[ConcernSpec, ConcernSpec]]()
        for lowest, highest in zip(self.low, self.high, strict=True):
            boxes += _boxes(lowest, highest)
        low = torch.stack([lowest.costs() for lowest, _ in boxes])
        high = torch.stack([highest.costs() for _, highest in boxes])
        # A coarse answer can cost a maximum of other costs, which is not linear: use one box.
        if self.low[0].answers:
            return low.amin(0, keepdim=True), high.amax(0, keepdim=True)
        return low, high

    def uncertain(self, matters: Tensor) -> list[UncertainCost]:
        """Return the costs where ``matters`` (C, K), bool, is True, and that are ranges or differ between people."""
        low, high = self.bounds()
        lowest = low.amin(0)
        highest = high.amax(0)
        is_uncertain = (lowest < highest) & matters
        cost_name = self._names_of_costs()
        costs = dict[str, UncertainCost]()
        for true, column in is_uncertain.nonzero().tolist():
            name = cost_name(true, column)
            if name not in costs:
                costs[name] = UncertainCost(
                    name, [], lowest[true, column].item(), highest[true, column].item()
                )
            costs[name].cells.append((true, column))
        return list(costs.values())

    def _shares_releases(self) -> bool:
        """Return whether no spec has weights and all specs release (tolerate) the same errors."""
        first = self.low[0].dangerous_pairs()
        return all(
            spec.weights is None and spec.dangerous_pairs().equal(first)
            for spec in self._specs
        )

    def _names_of_costs(self) -> Callable[[int, int], str]:
        """Return a function that names the cost at a row and column; costs set by the same number share a name."""
        names = self.classes
        answers = [name for name, _ in self.low[0].answers]
        released = None
        if self._shares_releases() and not answers:
            released = self.low[0].released_array()
        is_by_class = bool(answers) or any(
            isinstance(spec.refer, Sequence) for spec in self._specs
        )

        def cost_name(true: int, column: int) -> str:
            answer = column - len(names)
            if answer < 0:
                if released is not None and released[true, column]:
                    return "a released error"
                return f"taking {names[true]} for {names[column]}"
            if answer < len(answers):
                return f'answering "{answers[answer]}" for {names[true]}'
            return f"referring {names[true]}" if is_by_class else "a referral"

        return cost_name


def range_from_fields(
    low: Sequence[ConcernSpec], high: Sequence[ConcernSpec]
) -> ConcernRange:
    """Make a range from the values of its fields, as a pickle stores them (see `spec_from_fields`)."""
    return ConcernRange(low, high)


def _find_problems(
    low: Sequence[ConcernSpec], high: Sequence[ConcernSpec]
) -> Iterator[Problem]:
    """Yield the reasons why ``low`` and ``high`` (one spec per person) are invalid cost ranges."""
    if not low or len(low) != len(high):
        yield problem("spec_per_person", low=len(low), high=len(high))
        return
    of_first = _shared_parts(low[0])
    for spec in (*low, *high):
        for part, value in _shared_parts(spec).items():
            first = of_first[part]
            if value != first:
                yield problem("agree", part=part, first=quoted(first), value=value)
    for lowest, highest in zip(low, high, strict=True):
        is_one_weighted = (lowest.weights is None) != (highest.weights is None)
        if lowest.releases != highest.releases or is_one_weighted:
            yield problem("same_pairs")
        # Do not compare equal specs: they may have too many classes for a matrix.
        elif lowest != highest and (lowest.costs() > highest.costs()).any():
            yield problem("low_below_high")


def _shared_parts(spec: ConcernSpec) -> dict[str, object]:
    """Return what all specs of a range must share, by its name in messages."""
    return {
        "classes": list(spec.classes),
        "whether a referral has a cost": spec.refer is not None,
        "coarse answers": [name for name, _ in spec.answers],
        "concession": spec.concession,
        "groups of classes": spec.class_groups,
    }


def _boxes(low: ConcernSpec, high: ConcernSpec) -> list[tuple[ConcernSpec, ConcernSpec]]:
    """Return pairs of low and high costs, in which a factor and a single referral cost are fixed at one end."""
    # Sets, because both ends may be equal: then there is one box.
    factors = {low.factor, high.factor} if low.weights is None else {low.factor}
    referrals = {(low.refer, low.refer), (high.refer, high.refer)}
    if isinstance(low.refer, Sequence) or isinstance(high.refer, Sequence):
        referrals = {(low.refer, high.refer)}  # costs by class vary independently
    boxes = list[tuple[ConcernSpec, ConcernSpec]]()
    for factor in sorted(factors):
        # Any order will do, if it is always the same; None and numbers have no order but that of their texts.
        for lowest, highest in sorted(referrals, key=str):
            first = replace(low, factor=factor, refer=lowest)
            boxes.append((first, replace(high, factor=factor, refer=highest)))
    return boxes
