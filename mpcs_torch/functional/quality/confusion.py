"""Scores that a confusion matrix holds; everywhere rows are true classes and columns predicted ones."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.decisions import Decided


def count_pairs(decided: Decided, num_classes: int) -> Tensor:
    """How often each (true, predicted) pair was counted: int64 (C, C)."""
    pair = decided.target * num_classes + decided.predicted
    cells = torch.zeros(num_classes * num_classes, dtype=torch.int64, device=pair.device)
    return cells.index_add(0, pair, decided.counted.long()).reshape(num_classes, num_classes)


def accuracy(confusion: Tensor) -> Tensor:
    """Share of right predictions in an integer matrix (C, C): float64 scalar in [0, 1]; higher is better."""
    return confusion.trace().double() / confusion.sum()


def macro_f1(confusion: Tensor) -> Tensor:
    """Mean F1 of the classes that occur, as true or predicted: float64 scalar in [0, 1]; higher is better."""
    right = confusion.diagonal().double()
    occurrences = confusion.sum(dim=0) + confusion.sum(dim=1)
    per_class = 2 * right / occurrences.clamp(min=1)
    return per_class.sum() / (occurrences > 0).sum()


def matthews_correlation(confusion: Tensor) -> Tensor:
    """Multi-class Matthews correlation: float64 scalar in [-1, 1]; higher is better; 0 where it is undefined.

    References:
        Gorodkin: Comparing two K-category assignments by a K-category correlation coefficient, 2004, Eq. 8.
    """
    counts = confusion.double()
    true, predicted, total = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.trace() * total - true @ predicted
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return torch.where(spread > 0, covariance / spread.clamp(min=1).sqrt(), 0.0)


def count_dangerous_cells(confusion: Tensor, released: Tensor) -> Tensor:
    """Errors whose (true, predicted) pair is not released (bool (C, C)): int64 scalar; lower is better."""
    return confusion.masked_fill(released, 0).fill_diagonal_(0).sum()
