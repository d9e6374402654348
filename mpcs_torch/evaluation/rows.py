"""Rows of predictions and labels, and the groups, clusters and weights of rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.arrays import as_tensor, at_rows, by_class
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, input_scale
from mpcs_torch.functional.inputs.soft_labels import annotator_shares, flatten_soft
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1

MIN_UNLIKELY = 20
"""The minimum number of rows, or trials, that are seldom all right, or all wrong."""


REPEATED = 2**17
"""The number of scores in each part that `Rows.repeated` yields."""


class Rows(NamedTuple):
    """The predictions of a model for some rows, and their labels."""

    probs: Tensor
    """(n, C): probabilities; or (n, 1), int64: decisions."""
    target: Tensor
    """(n,), int64: classes; or (n, C): soft labels, which are degrees of truth, or shares that sum to 1."""
    ids: Tensor
    """(n,), int64: identifiers of rows, or of their clusters if there are any; they pair the rows of two models. For
    crossed clusters, (n, 3): of clusters of the first column, of the second, and of pairs of both."""
    groups: Mapping[str, Tensor] = MappingProxyType({})
    """For each column of groups: the code of each row's group, (n,), int64."""
    weights: Tensor | None = None
    """(n,), float64, at least 0: the weight of each row; None without weights."""
    costs: Tensor | None = None
    """(n, C), float64: the cost of deciding for each class in each row; None if no metric takes costs."""
    frequencies: Tensor | None = None
    """(n,), int64, at least 1: the number of independent rows that each row stands for; None if all are 1."""

    def at(self, places: Tensor | slice) -> "Rows":
        """Return the rows at ``places``: indices, a slice, or a mask (n,) that is True for these rows."""
        groups = {column: codes[places] for column, codes in self.groups.items()}
        return at_rows(self, places)._replace(groups=groups)

    def by_class(self) -> tuple[Tensor | slice, Tensor, Tensor | None]:
        """Split each row with shares of several classes into one weighted row for each of these classes.

        Returns:
            For each new row: the index of the original row, the class, and the weight, (m,) each.
        """
        if self.target.ndim == 1:
            return slice(None), self.target, self.weights
        places, classes = self.target.nonzero(as_tuple=True)
        weights = self.target[places, classes]
        if self.weights is not None:
            weights = weights * self.weights[places]
        return places, classes, weights

    def repeated(self, *, is_clustered: bool) -> "Iterator[Rows]":
        """Repeat each row as often as its frequency says, and yield the copies in parts of 2**17 scores (`REPEATED`).

        Without clusters, the copies of a row are independent, so they get successive identifiers.
        """
        if self.frequencies is None:
            yield self
            return
        ends = self.frequencies.cumsum(0)
        step = max(1, REPEATED // self.probs.shape[1])
        for start in range(0, int(ends[-1]), step):
            numbers = torch.arange(start, min(start + step, int(ends[-1])))
            places = torch.searchsorted(ends, numbers, right=True)
            part = self.at(places)._replace(frequencies=None)
            first = (ends - self.frequencies)[places]
            yield part if is_clustered else part._replace(ids=part.ids + numbers - first)

    def weighted_by(self, of_classes: Tensor) -> "Rows":
        """Multiply the weight of each row by the weight of its class, given ``of_classes`` (C,)."""
        weights = of_classes[self.target]
        return self._replace(
            weights=weights if self.weights is None else weights * self.weights
        )

    @staticmethod
    def joined(parts: "Sequence[Rows]") -> "Rows":
        """Concatenate one or more parts, which must have the same fields and the same columns of groups."""
        if len(parts) == 1:
            return parts[0]
        groups = dict[str, Tensor]()
        for column in parts[0].groups:
            groups[column] = torch.cat([part.groups[column] for part in parts])
        joined = dict[str, Any]()
        for name, value in parts[0]._asdict().items():
            if isinstance(value, Tensor):
                joined[name] = torch.cat([getattr(part, name) for part in parts])
        return Rows(groups=groups, **joined)


def checked_scores(
    preds: Tensor, target: Tensor, num_classes: int, *, is_soft: bool, has_shares: bool
) -> tuple[Tensor, Tensor]:
    """Validate probabilities and labels, and return them on the CPU: float64 (N, C); int64 (N,), or float64 (N, C).

    Args:
        preds: ``(N, C)`` probabilities; or degrees of truth from 0 to 1, if soft labels are no shares.
        target: ``(N,)`` classes; or ``(N, C)`` soft labels.
        num_classes: The number of classes C.
        is_soft: Whether labels are soft.
        has_shares: Whether soft labels are the shares of annotators, which are divided by their sum.

    Raises:
        ValueError: If a shape or a dtype is wrong; for a value, an `InvalidValueError`.
    """
    shares: Tensor | None = None
    if is_soft:
        soft = flatten_soft(
            preds, target, num_classes=num_classes, sample_weight=None, ignore=None
        )
        faults = soft.find_faults()
        if not has_shares:
            raise_first(faults)
            return soft.predicted.double().cpu(), soft.actual.double().cpu()
        # The first check is of the labels; the predictions are checked below, as probabilities.
        raise_first(faults[:1])
        shares, fault = annotator_shares(soft.actual.double().cpu())
        raise_first([fault])
        preds = by_class(preds, num_classes)
        # Any valid class: only probabilities are checked below.
        target = shares.argmax(1).to(preds.device)
    samples = flatten_samples(preds, target, num_classes, input_scale(False))
    raise_first(samples.find_faults())
    probs = samples.scores.detach().double().cpu()
    labels = samples.labels.target.cpu() if shares is None else shares
    return probs, labels


def names_in(values: Any) -> list[Any]:
    """Return labels or decisions as a list if they are names; an empty list if they are numbers."""
    if hasattr(values, "to_numpy"):  # a list of a pandas frame would be its columns
        values = values.to_numpy()
    if isinstance(values, Tensor):
        return []
    plain = values.tolist() if hasattr(values, "tolist") else values
    return list(plain) if any(isinstance(each, str) for each in plain) else []


def as_numbers(argument: str, values: Any, numbers: Mapping[str, int]) -> Tensor:
    """Return labels or decisions as a tensor; each name is replaced by its number in ``numbers``."""
    if not (names := names_in(values)):
        return as_tensor(values, argument)
    if unknown := [name for name in names if name not in numbers]:
        code = "numbered_classes" if all(map(str.isdigit, numbers)) else "one_of"
        raise InvalidValueError(code, argument, unknown[0], choices=list(numbers))
    return torch.tensor([numbers[name] for name in names])


def column_names(values: Any) -> list[str]:
    """Return the names of the columns of a data frame; an empty list for arrays."""
    columns = list(getattr(values, "columns", ()))
    if not all(isinstance(name, str | int) for name in columns):
        return []
    return [str(name) for name in columns]


def in_class_order(argument: str, values: Any, class_names: Sequence[str]) -> Any:
    """Return the columns of a data frame in the order of the classes; return arrays unchanged.

    Raises:
        ValueError: If the names of the columns are not those of the classes.
    """
    names = column_names(values)
    if not names or names == list(class_names):
        return values
    if sorted(names) != sorted(class_names):
        raise InvalidValueError(
            "column_for_each_class", argument, names, classes=list(class_names)
        )
    return values[[values.columns[names.index(name)] for name in class_names]]


def dimensions(values: Any) -> int:
    """Return the number of dimensions of an array, a tensor or a list."""
    return np.ndim(values)


def is_decisions(preds: Any) -> bool:
    """Return whether predictions are decisions: names, or integers (N,) or, of positions such as pixels, (N, H, W)."""
    if names_in(preds):
        return True
    numbers = as_tensor(preds, "preds")
    return numbers.ndim != 2 and not numbers.is_floating_point()


def check_order(preds: Any, target: Any) -> None:
    """Raise a ValueError if arguments seem to be in scikit-learn's order, the target before the predictions."""
    require(not isinstance(target, Mapping), "labels_second", "target", target)
    if dimensions(preds) > 2:
        return
    if not is_decisions(preds):
        scores = as_tensor(preds, "preds")
        if scores.ndim != 2 or not scores.is_floating_point():
            is_of_one_class = scores.ndim == 1 and scores.is_floating_point()
            raise InvalidValueError(
                "both_classes" if is_of_one_class else "preds_first", "preds", scores
            )
    elif not names_in(target):
        labels = as_tensor(target, "target")
        if labels.ndim > 1 or labels.is_floating_point():
            raise InvalidValueError("classes_second", "target", labels)


Prevalence = Mapping[str, float] | Sequence[float] | Tensor


def class_weights(
    rows: Iterable[Rows], prevalence: Prevalence, class_names: Sequence[str]
) -> Tensor:
    """Return weights of classes, (C,), that give classes the requested shares; the mean weight of rows is 1.

    Args:
        rows: All rows, in parts. Existing weights of rows are taken into account, but frequencies are not.
        prevalence: The share of each class, ``(C,)`` or by class name; shares must sum to 1.
        class_names: The names of the C classes.

    Raises:
        ValueError: If the names differ from those of the classes, the shares do not sum to 1, or a class with a share
            has no rows.
    """
    if isinstance(prevalence, Mapping):
        by_name = {str(name): share for name, share in prevalence.items()}
        if by_name.keys() != {*class_names}:
            raise InvalidValueError(
                "names_all_classes", "prevalence", list(by_name), classes=list(class_names)
            )
        prevalence = [by_name[name] for name in class_names]
    shares = as_tensor(prevalence, "prevalence").double()
    if (
        shares.shape != (len(class_names),)
        or not (shares >= 0).all()
        or not sums_to_1(shares)
    ):
        raise InvalidValueError(
            "shares_with_sum_1", "prevalence", shares.tolist(), number=len(class_names)
        )
    present = torch.zeros_like(shares)
    number = 0
    for part in rows:
        if part.target.ndim != 1:
            raise InvalidValueError("needs_classes", "prevalence")
        present += part.target.bincount(part.weights, len(class_names))
        number += len(part.ids)
    is_lacking = (shares > 0) & (present == 0)
    lacking = [class_names[label] for label in is_lacking.nonzero().flatten().tolist()]
    if lacking:
        raise InvalidValueError("needs_rows_of", "prevalence", absent=lacking)
    return number * shares / present.clamp(min=1e-300)
