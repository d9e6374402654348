"""Arguments with a value for each row of data: group and cluster names, weights, frequencies and costs."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.arrays import as_tensor, by_class


class Groups(NamedTuple):
    """The group of each of N rows, such as the speaker or the recording condition."""

    names: list[str]
    """(G,): the distinct group names, in the order of their first occurrence."""
    codes: Tensor
    """(N,), int64: the index of each row's group in ``names``."""

    def of_rows(self) -> list[str]:
        """Return the name of each row's group, (N,)."""
        return [self.names[code] for code in self.codes.tolist()]


def row_names(argument: str, values: Any, number: int) -> list[str]:
    """Return one name per row; raise a ValueError if ``values`` lacks a name, or does not hold ``number`` names."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    names = [] if isinstance(plain, str) else list(plain)
    if any(isinstance(name, list) for name in names):
        raise ValueError(f"{argument} must have one dimension, but has more.")
    require(len(names) == number, f"{argument} must be one name for each of the {number} rows", len(names))
    missing = next((row for row, name in enumerate(names) if _is_missing(name)), None)
    if missing is not None:
        raise ValueError(f"{argument} must have a name for every row, but row {missing} (from 0) has none.")
    return [str(name) for name in names]


ROW_RULES: Mapping[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "weight": ("at least 0 and finite", lambda numbers: (numbers >= 0) & numbers.isfinite()),
    "frequency": ("a whole number of at least 1", lambda numbers: (numbers >= 1) & (numbers % 1 == 0)),
    "cost": ("finite", torch.isfinite),
    "amount": ("at least 0", lambda numbers: ~(numbers < 0)),
}
"""The rule of each kind of value, as text, and a function that returns which values obey the rule."""


def row_weights(values: Any, number: int) -> Tensor:
    """Validate one weight for each of ``number`` rows, and return them as float64 (N,) on the CPU."""
    return _row_values("weights", "weight", values, number).double()


MAX_REPEATED = 10**8
"""The largest sum of frequencies."""


def row_frequencies(values: Any, number: int) -> Tensor:
    """Validate the number of repetitions of each of ``number`` rows, and return int64 (N,) on the CPU."""
    counts = _row_values("frequencies", "frequency", values, number)
    if counts.double().sum() > MAX_REPEATED:
        rule = f"frequencies must sum to at most {MAX_REPEATED}"
        raise ValueError(f"{rule}, but sum to {counts.double().sum():g}.")
    return counts.long()


def row_costs(values: Any, target: Tensor, shape: Sequence[int]) -> Tensor:
    """Validate the costs of M rows with labels ``target``, and return those of each decision: float64 (M, C), CPU.

    They are those of each row, in the ``shape`` (N, C, ...), or by true class, of which those of the labels are taken.
    """
    costs = as_tensor(values, "costs").cpu().double()
    if tuple(costs.shape) == tuple(shape):
        return valid_values("costs", "cost", by_class(costs, shape[1]))
    rule = f"costs must be of each decision, {(*shape,)}, or by true class, {_by_true_class(shape)}"
    require(tuple(costs.shape) == _by_true_class(shape), rule, tuple(costs.shape))
    if target.ndim > 1:
        raise ValueError("costs must be (N, C) where labels are soft, not (N, C, C): no label says which are meant.")
    return costs_by_label(valid_values("costs", "cost", flat_costs(costs, shape)), target)


def costs_by_label(costs: Tensor, target: Tensor) -> Tensor:
    """Return what each decision costs, (M, K), by ``costs`` (C, K) or (M, C, K), if ``target`` (M,) are the classes."""
    if costs.ndim == 2:
        return costs.index_select(0, target)
    return costs.take_along_dim(target.reshape(-1, 1, 1), dim=1).squeeze(1)


def costs_if_wrong(amounts: Tensor) -> Tensor:
    """Return costs by true class: deciding for a class costs its amount if the class is wrong, and else nothing.

    Losses and decision rules take costs by true class, because a cost of deciding alone says nothing of the true class.

    Args:
        amounts: ``(N, C)``, ``(N, C, ...)`` or, for one sample, ``(C,)``: what deciding for each class costs if it is
            wrong, such as an amount of money, at least 0; NaN if it is not known.

    Returns:
        ``(N, C, C)``, ``(N, C, C, ...)`` or ``(C, C)``: sample, true class, decision.

    Raises:
        ValueError: If an amount is below 0.

    Example:
        >>> costs_if_wrong(torch.tensor([[600.0, 50.0], [3000.0, 200.0]]))  # of granting a loan, and of refusing it
        tensor([[[   0.,   50.],
                 [ 600.,    0.]],
        <BLANKLINE>
                [[   0.,  200.],
                 [3000.,    0.]]])
    """
    amounts = as_tensor(amounts, "amounts")
    require(amounts.ndim, "amounts must have shape (N, C), (N, C, ...) or (C,)", "()")
    place = min(1, amounts.ndim - 1)
    of_class = valid_values("amounts", "amount", amounts).movedim(place, -1)
    is_right = torch.eye(of_class.shape[-1], dtype=torch.bool, device=of_class.device)
    return torch.where(is_right, 0, of_class.unsqueeze(-2)).movedim((-2, -1), (place, place + 1))


def flat_costs(costs: Any, shape: Sequence[int]) -> Tensor:
    """Flatten ``costs`` by true class, (N, C, C, ...), for scores of ``shape`` (N, C, ...) or (C,), to (M, C, C)."""
    costs = as_tensor(costs, "costs").detach()
    rule = f"costs must be by true class, {_by_true_class(shape)} (functional.costs_if_wrong makes them of amounts)"
    require(tuple(costs.shape) == _by_true_class(shape), rule, tuple(costs.shape))
    place = min(1, len(shape) - 1)
    last: Tensor = costs.movedim((place, place + 1), (-2, -1))
    return last.reshape(-1, shape[place], shape[place])


def _by_true_class(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of costs by true class, for scores of ``shape`` (N, C, ...) or (C,)."""
    place = min(1, len(shape) - 1)
    return (*shape[: place + 1], *shape[place:])


def _row_values(name: str, kind: str, values: Any, number: int) -> Tensor:
    """Validate one value for each of ``number`` rows."""
    tensor = as_tensor(values, name).cpu()
    require(tensor.shape == (number,), f"{name} must be (N,) for the {number} rows", f"shape {tuple(tensor.shape)}")
    return valid_values(name, kind, tensor)


def valid_values(name: str, kind: str, tensor: Tensor) -> Tensor:
    """Return ``tensor`` (N, ...), whose values must obey the rule of their ``kind``."""
    rule, is_valid = ROW_RULES[kind]
    flat = tensor.unsqueeze(1).flatten(1)  # one value for each row, or one for each decision
    bad = (~is_valid(flat)).nonzero().tolist()
    if bad:
        sample, column = bad[0]
        value = f"{flat[sample, column]:g}"
        has_columns = tensor.ndim > 1
        raise InvalidValueError(
            f"{name} must each be {rule}", value, sample=sample, column=column if has_columns else None
        )
    return tensor


def group_codes(argument: str, values: Any, number: int) -> Groups:
    """Return the group of each row from ``values``, one group name per row; `Groups` are returned unchanged."""
    if isinstance(values, Groups):
        count = len(values.codes)
        require(count == number, f"{argument} must be one name for each of the {number} rows", count)
        return values
    codes = dict[str, int]()
    row_codes = [codes.setdefault(name, len(codes)) for name in row_names(argument, values, number)]
    return Groups(list(codes), torch.tensor(row_codes, dtype=torch.int64))


def codes_by_column(groups: Any, number: int) -> dict[str, Groups]:
    """Return the `Groups` of each column of ``groups``, by column name; an empty dict for None."""
    if groups is None:
        return {}
    is_mapping = isinstance(groups, Mapping)
    require(is_mapping, "groups must map columns to the names of rows", f"a {type(groups).__name__}")
    return {column: group_codes(f"groups[{column!r}]", values, number) for column, values in groups.items()}


def _is_missing(name: object) -> bool:
    is_nan = isinstance(name, float) and isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType") or name == ""  # types of pandas
