"""Intervals of the precision, recall and error rate of each class."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mpcs_torch.functional import clopper_pearson
from mpcs_torch.scoring.count_intervals import CONFIDENCE, Counts, Interval, interval_of_drawn
from mpcs_torch.scoring.scores import ClassIntervals


def exact_class_intervals(confusion: Tensor, class_names: Sequence[str]) -> ClassIntervals:
    """Compute the intervals of Clopper and Pearson, for independent rows.

    Args:
        confusion: ``(C, C)`` counts, rows true classes.
        class_names: C names.
    """
    counts = (confusion.diagonal().tolist(), confusion.sum(0).tolist(), confusion.sum(1).tolist())
    return {
        name: _of_class(*(clopper_pearson(right, number, confidence=CONFIDENCE) if number else None for number in both))
        for name, right, *both in zip(class_names, *counts, strict=True)
    }


def drawn_class_intervals(counts: Sequence[Counts], class_names: Sequence[str], independent: int) -> ClassIntervals:
    """Compute the percentile intervals of resamples, for clusters.

    Args:
        counts: Those of all resamples, in batches.
        class_names: C names.
        independent: The number of clusters.
    """
    right, true, predicted = (torch.cat(held) for held in zip(*counts, strict=True))
    rates = [(right / of).unbind(1) for of in (predicted, true)]
    return {
        name: _of_class(*(interval_of_drawn(values, independent) for values in of_class))
        for name, *of_class in zip(class_names, *rates, strict=True)
    }


def _of_class(precision: Interval | None, recall: Interval | None) -> dict[str, Interval]:
    """Return the intervals that are known, by rate."""
    errors = None if recall is None else (1 - recall[1], 1 - recall[0])
    named = {"precision": precision, "recall": recall, "error_rate": errors}
    return {name: interval for name, interval in named.items() if interval is not None}
