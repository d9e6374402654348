"""Keep the states of any Metric for each part of the rows, from which the value without some parts is computed.

The hash of each row, or of its cluster, decides to which part the row belongs. States that are sums, minima, maxima or
collected samples merge as in torchmetrics. So the value without some parts needs no second pass over the rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat, dim_zero_max, dim_zero_min, dim_zero_sum

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.parts import FOLDS, LeftOut
from mpcs_torch.evaluation.reasons import NOT_REQUESTED, Reason
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.unit_sums import in_bits, places_by_code
from mpcs_torch.functional.comparison.confidence_intervals import MIN_UNITS
from mpcs_torch.metrics.base import SumMetric

BITS = 7
"""The maximum number of parts as an exponent of 2: 128."""
BITS_OF_SAMPLES = 6
"""The maximum number of parts if samples are collected, as an exponent of 2: 64, because samples are slow to join."""
MIN_BITS = 5
"""The minimum number of parts as an exponent of 2: 32, which is also the maximum for groups of rows."""
MAX_STATE_NUMBERS = 2**24
"""The maximum number of values (128 MiB) in the states of all parts of a metric, without collected samples."""
WRAPS_METRICS = Reason("wraps_metrics")
NOT_MERGEABLE = Reason("not_mergeable")


class PartStates:
    """The states of a metric, stored separately for each part of the rows.

    Args:
        metric: The metric that computes states and values. It is reset before use, so several objects may share it.
        bits: The maximum number of parts is ``2**bits``. Up to this number of rows or clusters, each of them is a part.
            Beyond it, the first bits of the hash of a row or cluster are the number of its part.
        parts: The initial states of each part, by the number of the part.
    """

    def __init__(
        self,
        metric: Metric,
        *,
        bits: int = BITS,
        parts: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self.metric = metric
        self._whole: Metric | None = None
        """The metric after all rows, if its states do not merge; else None."""
        states = metric._defaults.values()
        tensors = [state for state in states if isinstance(state, Tensor)]
        self._numbers: int = sum(tensor.numel() for tensor in tensors)
        """The number of values in the states of a part; collected samples are not counted."""
        self.reason = unmergeable(metric)
        """The reason why the value without some parts cannot be computed; None if it can."""
        if self.reason is None and bits == 0:
            self.reason = NOT_REQUESTED
        if self.reason is None and self._is_too_large(MIN_BITS):
            self.reason = Reason("too_large", number=self._numbers, text=str(2**MIN_BITS))
        has_samples = len(tensors) < len(metric._defaults)
        self._max_bits = 0
        if self.reason is None:
            self._max_bits = min(bits, BITS_OF_SAMPLES if has_samples else BITS)
        while self._max_bits > 0 and self._is_too_large(self._max_bits):
            self._max_bits -= 1
        self._bits: int | None = None if self._max_bits else 0
        """The number of bits of the hashes that identify parts; None while each row or cluster is a part."""
        self._parts = dict(parts)

    def _is_too_large(self, bits: int) -> bool:
        """Return whether ``2**bits`` parts would have too many values."""
        parts: int = 2**bits
        return self._numbers * parts > MAX_STATE_NUMBERS

    def _codes(self) -> Tensor:
        """Return the number of each part, int64, also if there is none."""
        return torch.tensor([*self._parts], dtype=torch.int64)

    def add(self, ids: Tensor, *inputs: Tensor, weights: Tensor | None = None) -> None:
        """Add rows with identifiers ``ids``, (n,), int64, the metric's ``inputs``, (n, ...), and ``weights``, (n,)."""
        if not self._parts and self.reason is None:
            self._check_first_batch(inputs, weights)
        further = {} if weights is None else {"sample_weight": weights}
        if self.reason in (WRAPS_METRICS, NOT_MERGEABLE):
            if self._whole is None:
                self._whole = deepcopy(self.metric)
            self._whole.update(*inputs, **further)
            return
        if self._bits is None:
            added: list[int] = ids.unique().tolist()  # type: ignore[no-untyped-call]
            if len({*added, *self._parts}) > 2**self._max_bits:
                self._fold(self._max_bits)
        parts = in_bits(ids, None, self._bits)
        for code, states in states_by_part(self.metric, parts, inputs, further):
            self._join(code, states)

    def _check_first_batch(self, inputs: Sequence[Tensor], weights: Tensor | None) -> None:
        """Test on rows whether states merge, which a SumMetric promises; those of `OfRows` do, but may lack weights."""
        if isinstance(self.metric, SumMetric):
            return
        if isinstance(self.metric, OfRows):
            self.metric.check_weights(inputs, weights)
        elif not merges(self.metric, *inputs):
            self.reason = NOT_MERGEABLE

    def merge(self, other: Self, *, first: int = 0) -> None:
        """Add the states of ``other``. If its identifiers are positions of rows, add ``first`` to each of them."""
        self.reason = self.reason or other.reason
        if other._whole is not None:
            if self._whole is None:
                self._whole = deepcopy(other._whole)
            else:
                self._whole.merge_state(other._whole)
        self._fold(other._bits)
        codes = other._codes()
        if other._bits is None:  # codes are not hashed yet
            codes = codes + first
        codes_here = in_bits(codes, other._bits, self._bits).tolist()
        for code, states in zip(codes_here, other._parts.values(), strict=True):
            self._join(code, states)
        if len(self._parts) > 2**self._max_bits:
            self._fold(self._max_bits)

    @property
    def numbers(self) -> int:
        """The number of values in the states of all parts; collected samples are not counted."""
        return len(self._parts) * self._numbers

    def loaded(self, parts: Sequence[int] | None = None) -> Metric:
        """Return the metric with the merged states of ``parts``, by default of all parts."""
        if self._whole is not None:
            return self._whole
        if parts is None:
            parts = list(self._parts)
        chosen = [self._parts[part] for part in parts]
        self.metric.reset()
        set_states(self.metric, chosen)
        return self.metric

    def leave_out(
        self, compute_value: Callable[[Metric], Tensor], whole: Tensor
    ) -> "LeftOut":
        """Return the values without some parts, each from ``compute_value``; ``whole`` is the value of all rows."""
        parts = sorted(self._parts)
        number = len(parts)
        if number < MIN_UNITS:
            none = whole.new_zeros(0, *whole.shape)
            return LeftOut(whole, none, none, none, whole)
        # The same parts form a fold in all models.
        generator = torch.Generator().manual_seed(0)
        folds = min(FOLDS, number)
        fold_of_part = torch.randperm(number, generator=generator) % folds

        def without(is_left_out: Tensor) -> Tensor:
            kept = [parts[place] for place in (~is_left_out).nonzero().flatten().tolist()]
            return compute_value(self.loaded(kept))

        singles = torch.stack([without(fold_of_part == fold) for fold in range(folds)])
        if folds == number:  # each part is a fold
            alone = singles[fold_of_part]
        else:
            alone = torch.stack(
                [without(torch.arange(number) == place) for place in range(number)]
            )
        fold_before = (fold_of_part - 1) % folds
        pairs = torch.stack(
            [
                without((fold_of_part == fold) | (fold_before == fold))
                for fold in range(folds)
            ]
        )
        # The value of a quarter of the folds alone.
        quarters = torch.stack([without(fold_of_part % 4 != kept) for kept in range(4)])
        return LeftOut(whole, alone, singles, pairs, quarters.mean(0))

    def _join(self, code: int, states: Mapping[str, Any]) -> None:
        known = self._parts.get(code)
        if known is not None:
            joins = state_joins(self.metric)
            states = {
                name: joins[name]([known[name], each]) for name, each in states.items()
            }
        self._parts[code] = dict(states)

    def _fold(self, bits: int | None) -> None:
        """Shorten the hash of each part to ``bits`` bits, and join parts with equal hashes; with None, do nothing."""
        if bits is None or (self._bits is not None and self._bits <= bits):
            return
        codes = in_bits(self._codes(), self._bits, bits).tolist()
        states = list(self._parts.values())
        self._parts = {}
        self._bits = bits
        for code, state in zip(codes, states, strict=True):
            self._join(code, state)


class OfRows(Metric):
    """A Metric that collects all rows; its value is ``function`` of these `Rows`."""

    full_state_update = False
    probs: list[Tensor]
    target: list[Tensor]
    weights: list[Tensor]

    def __init__(self, function: Callable[[Rows], Any]) -> None:
        super().__init__()
        self.function = function
        for name in ("probs", "target", "weights"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Add a batch of rows."""
        self.probs.append(preds)
        self.target.append(target)
        if sample_weight is not None:
            self.weights.append(sample_weight)

    def compute(self) -> Tensor:
        """Return the value of the function for all rows so far."""
        weights = dim_zero_cat(self.weights) if len(self.weights) else None
        return self._value(dim_zero_cat(self.probs), dim_zero_cat(self.target), weights)

    def check_weights(self, inputs: Sequence[Tensor], weights: Tensor | None) -> None:
        """Raise a ValueError if the value of ``function`` changes with the rows, but not with their weights."""
        if weights is None or len(weights) < 2:
            return
        probs, target = inputs
        value = self._value(probs, target, weights)
        other_weights = weights * torch.linspace(1, 2, len(weights), dtype=weights.dtype)
        of_other_weights = self._value(probs, target, other_weights)
        of_half = self._value(probs[::2], target[::2], weights[::2])
        if value.equal(of_other_weights) and not value.equal(of_half):
            raise InvalidValueError("uses_weights", "a function of weighted rows")

    def _value(self, probs: Tensor, target: Tensor, weights: Tensor | None) -> Tensor:
        value = self.function(
            Rows(probs, target, torch.arange(len(target)), weights=weights)
        )
        return torch.as_tensor(value, dtype=torch.float64)


def set_states(metric: Metric, parts: Sequence[Mapping[str, Any]]) -> None:
    """Give a metric the merged states of some parts of the rows."""
    for name, join in state_joins(metric).items():
        # Metrics of this package check the name of an attribute that is set, unless it is set in __dict__.
        metric.__dict__[name] = join([states[name] for states in parts])
    metric._update_count = 1
    metric._computed = None


def states_by_part(
    metric: Metric, parts: Tensor, inputs: Sequence[Tensor], further: Mapping[str, Tensor]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the states of the rows of each part alone; ``parts`` has the part of each row, (n,), int64."""
    for part, places in places_by_code(parts).items():
        rows = places.to(inputs[0].device)
        named = {name: each[rows] for name, each in further.items()}
        yield part, states_of_rows(metric, [each[rows] for each in inputs], named)


def states_of_rows(
    metric: Metric, inputs: Sequence[Tensor], further: Mapping[str, Tensor]
) -> dict[str, Any]:
    """Return the states of ``metric`` for the rows ``inputs`` alone, and reset the metric.

    If the metric takes no ``sample_weight``, the states for each distinct weight are multiplied by it, and added.
    """
    weights = further.get("sample_weight")
    if weights is None or "sample_weight" in signature(metric.update).parameters:
        return _states_after(metric, inputs, further)
    named = _without_weights(further)
    summed = dict[str, Any]()
    for weight in weights.unique():  # type: ignore[no-untyped-call]
        rows = weights == weight
        inputs_of_weight = [values[rows] for values in inputs]
        named_of_weight = {name: values[rows] for name, values in named.items()}
        states = _states_after(metric, inputs_of_weight, named_of_weight)
        for name, state in states.items():
            summed[name] = summed.get(name, 0) + weight.double() * state
    return summed


def _without_weights(further: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the arguments of an update but its weights."""
    return {name: values for name, values in further.items() if name != "sample_weight"}


def _states_after(
    metric: Metric, inputs: Sequence[Tensor], further: Mapping[str, Tensor]
) -> dict[str, Any]:
    metric.reset()
    metric.update(*inputs, **further)
    # Lists are copied, because torchmetrics empties them in place.
    states = {
        name: list(state) if isinstance(state, list) else state
        for name, state in metric.metric_state.items()
    }
    metric.reset()
    return states


def unmergeable(metric: Metric) -> Reason | None:
    """Return the reason why the states of parts of the rows do not merge, as the metric declares them; else None."""
    if not metric._defaults:
        return WRAPS_METRICS
    return NOT_MERGEABLE if None in state_joins(metric).values() else None


def takes_weights(metric: Metric) -> bool:
    """Return whether the metric works with weights: its ``update`` takes them, or all its states are sums over rows."""
    if "sample_weight" in signature(metric.update).parameters:
        return True
    return set(metric._reductions.values()) == {dim_zero_sum}


def merges(metric: Metric, *inputs: Tensor, **further: Tensor) -> bool:
    """Test whether the merged states of two parts of the rows give the same value as all rows at once.

    At most 1000 rows are used. For a single row, the result is True.
    """
    number = len(inputs[0])
    if number < 2:
        return True
    named = _without_weights(further)

    def updated(rows: Tensor) -> Metric:
        measured = deepcopy(metric)
        measured.update(
            *(each[rows] for each in inputs),
            **{name: each[rows] for name, each in named.items()},
        )
        return measured

    places = torch.arange(min(number, 1000))
    # Unequal parts, so that a mean of means differs; those of two rows are equal, but show a sum of means.
    is_third = places % 3 == 0
    parts = [updated(places[is_third]), updated(places[~is_third])]
    merged = deepcopy(metric)
    set_states(merged, [part.metric_state for part in parts])
    whole = updated(places).compute()
    joined = merged.compute()
    if not isinstance(whole, dict):
        whole, joined = {"": whole}, {"": joined}
    return all(_is_close(whole[name], joined[name]) for name in whole)


def _is_close(one: Any, other: Any) -> bool:
    one, other = torch.as_tensor(one), torch.as_tensor(other)
    return one.shape == other.shape and torch.allclose(
        one.double(), other.double(), equal_nan=True
    )


def _collected(states: Sequence[Any]) -> Any:
    """Join collected samples: to a list of batches, or to one tensor if torchmetrics has joined some of them."""
    batches = list[Tensor]()
    for state in states:
        if isinstance(state, list):
            batches.extend(state)
        else:
            batches.append(state)
    are_lists = all(isinstance(state, list) for state in states)
    return batches if are_lists else dim_zero_cat(batches)


def state_joins(metric: Metric) -> dict[str, Any]:
    """Return, by name of each state, the function that merges a list of its values; None if the state cannot merge."""
    joins = {name: _JOINS.get(reduction) for name, reduction in metric._reductions.items()}
    for name, reduction in metric._reductions.items():
        if reduction is None and isinstance(metric._defaults[name], list):
            joins[name] = _collected
    return joins


_JOINS: Mapping[Any, Callable[[Sequence[Any]], Any]] = {
    dim_zero_sum: lambda states: torch.stack(list(states)).sum(0),
    dim_zero_min: lambda states: torch.stack(list(states)).amin(0),
    dim_zero_max: lambda states: torch.stack(list(states)).amax(0),
    dim_zero_cat: _collected,
}
