"""Arrays of NumPy, and specs of concern, as the tensors that functions compute with."""

from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor

MAX_SHOWN = 100
"""Characters of a value in a message."""


class ConcernLike(Protocol):
    """The parts of a `mpcs_torch.ConcernSpec` that functions read."""

    @property
    def concession(self) -> float | None:
        """The allowed distance of a confidence from certainty."""

    def matrix(self) -> Tensor:
        """Return the concern of each pair, (C, C)."""

    def compact_matrix(self) -> Tensor:
        """Return the concern of each pair, (C, C), sparse if there are many classes."""

    def costs(self) -> Tensor:
        """Return the cost of each decision, (C, C) or (C, C + A + 1)."""

    def dangerous_pairs(self) -> Tensor:
        """Return the dangerous pairs, bool (C, C)."""

    def over_answers(self, pairs: Tensor) -> Tensor:
        """Return values of pairs (C, C) for coarse answers, too: (C, C + A)."""


def as_tensor(values: Any, name: str) -> Tensor:
    """Return a tensor as it is, and an array or a list of numbers as a tensor on the CPU.

    Raises:
        ValueError: If the values are not numbers that a tensor can hold.
    """
    if isinstance(values, Tensor):
        return values
    try:
        array = np.asarray(values)
        # A tensor cannot share the memory of an array that is read-only or has strides below 0.
        return torch.from_numpy(array if array.flags.writeable and array.flags.c_contiguous else array.copy())
    except (TypeError, ValueError):
        dtype = getattr(values, "dtype", "mixed values")
        raise ValueError(f"{name} must hold numbers, but got {type(values).__name__} of {dtype}.") from None


def as_tensors(preds: Any, target: Any, sample_weight: Any = None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return scores, labels and weights as tensors; without weights, None."""
    weight = None if sample_weight is None else as_tensor(sample_weight, "sample_weight")
    return as_tensor(preds, "preds"), as_tensor(target, "target"), weight


def detached(values: Any, name: str = "preds") -> Tensor:
    """Return values as a tensor without gradients."""
    return as_tensor(values, name).detach()


def is_spec(concern: object) -> TypeGuard[ConcernLike]:
    """Tell a `ConcernSpec` from weights; nothing here imports its class."""
    return hasattr(concern, "dangerous_pairs")


def no_concern(given: object) -> str:
    """Return how errors end that name what was given instead of a spec: a file or a name must be loaded."""
    text = repr(str(given) if isinstance(given, Path) else given)
    short = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
    return f"{short}: mpcs_torch.load_concern reads a file." if isinstance(given, str | Path) else f"{short}."


def weights_of(concern: Tensor | ConcernLike, *, compact: bool = False) -> Tensor:
    """Return the weights of a spec, or the given ones."""
    if is_spec(concern):
        return concern.compact_matrix() if compact else concern.matrix()
    return _given(concern)


def costs_of(concern: Tensor | ConcernLike) -> Tensor:
    """Return the costs of a spec, or the given ones."""
    return concern.costs() if is_spec(concern) else _given(concern)


def pairs_of(concern: Tensor | ConcernLike) -> Tensor:
    """Return the dangerous pairs of a spec, or the given ones."""
    return concern.dangerous_pairs() if is_spec(concern) else _given(concern)


def _given(concern: Any) -> Tensor:
    if not isinstance(concern, Tensor) and not hasattr(concern, "__array__") and not isinstance(concern, list):
        raise ValueError(f"concern must be a ConcernSpec or a tensor, but got {no_concern(concern)}")
    return as_tensor(concern, "concern")
