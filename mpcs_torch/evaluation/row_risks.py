"""Keep the estimated risk of each row for reports: the probability that its decision is a dangerous error."""

import torch
from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.concern.coverage import risks_of
from mpcs_torch.functional.concern.dangerous import dangerous_pairs_of
from mpcs_torch.functional.inputs.decisions import highest_class

MAX_CLASSES = 1000
"""The maximum number of classes for which risks are kept, because pairs of classes take memory."""


class RowRisks:
    """The estimated risk of each row: the probability that its decision is a dangerous error, according to the model.

    A row takes 5 bytes, and 8 more for a weight. Rows with soft labels or decisions, or with more classes than
    `MAX_CLASSES`, are not kept.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, ...]] = []
        """Risks, whether decisions are dangerous errors, and any weights."""

    def add(self, rows: Rows, chosen: ChosenMetrics) -> None:
        """Add the risks of rows, whose dangerous errors are those of the concern of the metrics."""
        if chosen.is_soft or chosen.is_decided or chosen.num_classes > MAX_CLASSES:
            return
        pairs, decisions = dangerous_pairs_of(chosen.concern, chosen.num_classes), highest_class(rows.probs)[1]
        columns = [risks_of(rows.probs, decisions, pairs).float(), pairs[rows.target, decisions]]
        if rows.weights is not None:
            columns.append(rows.weights)
        self._parts.append(tuple(columns))

    def risks(self) -> tuple[Tensor, ...] | None:
        """Return risks, float32 (N,), whether decisions are dangerous errors (N,), any weights; None if not kept."""
        return tuple(torch.cat(parts) for parts in zip(*self._parts, strict=True)) or None
