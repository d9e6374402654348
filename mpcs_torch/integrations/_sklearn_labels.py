"""Convert labels and probabilities of scikit-learn to the class order of a concern."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import MpcsError, quoted
from mpcs_torch.functional.inputs.arrays import no_concern
from mpcs_torch.functional.inputs.decisions import REFERRED


class ScorerError(MpcsError, ValueError):
    """A metric cannot be a scorer, or a concern is not a `ConcernSpec`."""


class LabelError(MpcsError, ValueError):
    """A label is not one of the classes of the concern."""


def classes_of(concern: ConcernSpec) -> tuple[str, ...]:
    """Return the class names of a concern; raise a `ScorerError` if it is not a `ConcernSpec` (a path, for example)."""
    if not isinstance(concern, ConcernSpec):
        raise ScorerError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
    return concern.classes


def class_indices(
    labels: Any, class_names: Sequence[str], argument: str = "labels", *, refer_value: str | float | None = None
) -> Tensor:
    """Return the index of each label (N,) or (N, 1) in ``class_names``, or `REFERRED` for a referral: int64 (N,).

    Raise a `LabelError` if a label is missing or is not a class. Its message calls the labels ``argument``.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise LabelError(f"{argument} must have shape (N,), but have {labels.shape}.")
    listed = labels.tolist()
    places: dict[Any, int] = {} if refer_value is None else {refer_value: REFERRED}
    places |= {label: class_index(label, class_names, argument) for label in set(listed) - places.keys()}
    return torch.tensor([places[label] for label in listed], dtype=torch.int64)


def ordered_probabilities(probabilities: Any, classes: Any, class_names: Sequence[str]) -> Tensor:
    """Reorder probabilities from the order of an estimator's ``classes`` to that of ``class_names``: float64 (N, C).

    A class that the estimator did not see in training gets probability 0.
    """
    columns = torch.from_numpy(np.asarray(probabilities, dtype=np.float64))
    ordered = columns.new_zeros(len(columns), len(class_names))
    ordered[:, class_indices(classes, class_names, "labels of classes_")] = columns
    return ordered


def class_index(label: Any, class_names: Sequence[str], argument: str) -> int:
    """Return the index in ``class_names`` of a label, which is a name or already an index."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool) and not {"False", "True"}.intersection(class_names):
        label = int(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    is_index = isinstance(label, int) and not isinstance(label, bool)
    if is_index and not all(name.removeprefix("-").isdecimal() for name in class_names):
        if 0 <= label < len(class_names):
            return int(label)
    elif isinstance(label, str | int) and str(label) in class_names:
        return class_names.index(str(label))
    shown = quoted(list(class_names))
    raise LabelError(f"{argument} must be classes of the concern, {shown}, but one is {quoted(label)}.")


def checked_probabilities(values: Any, class_names: Sequence[str]) -> Tensor:
    """Return probabilities (N, C) as a float64 tensor, after a check of their shape."""
    probabilities = torch.as_tensor(np.asarray(values, dtype=np.float64))
    if probabilities.ndim != 2 or probabilities.shape[1] != len(class_names):
        shape, size = tuple(probabilities.shape), len(class_names)
        raise LabelError(f"y_prob must have shape (N, {size}), a column for each class, but has {shape}.")
    return probabilities
