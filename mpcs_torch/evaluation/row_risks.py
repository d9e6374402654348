"""Keep the estimated risk of each row for reports: the probability that its decision is a dangerous error."""

import torch
from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.concern.dangerous import dangerous_pairs_of
from mpcs_torch.functional.concern.risk_coverage_area import risks_of
from mpcs_torch.functional.inputs.most_probable import highest_class

MAX_CLASSES = 1000
"""The maximum number of classes for which risks are kept, because pairs of classes take memory."""


class RowRisks:
    """The estimated risk of each row: the probability that its decision is a dangerous error, by its own probabilities.

    A row takes 5 bytes, and 9 more for two classes, or 8 more for a weight. Rows with soft labels or decisions, or with
    more classes than `MAX_CLASSES`, are not kept.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, ...]] = []
        """Risks, and whether decisions are dangerous errors; then weights, or for two classes scores and labels."""
        self.is_weighted = False

    def add(self, rows: Rows, chosen: ChosenMetrics) -> None:
        """Add the risks of rows, whose dangerous errors are those of the concern of the metrics."""
        self.is_weighted = rows.weights is not None
        if chosen.is_soft or chosen.is_decided or chosen.num_classes > MAX_CLASSES:
            return
        pairs, decisions = dangerous_pairs_of(chosen.concern, chosen.num_classes), highest_class(rows.probs)[1]
        columns = [risks_of(rows.probs, decisions, pairs).float(), pairs[rows.target, decisions]]
        if rows.weights is not None:
            columns.append(rows.weights)
        elif len(pairs) == 2:
            columns += [rows.probs[:, 1].clone(), rows.target == 1]
        self._parts.append(tuple(columns))

    def risks(self) -> tuple[Tensor, ...] | None:
        """Return risks, float32 (N,), whether decisions are dangerous errors (N,), any weights; None if not kept."""
        columns = self._columns()
        return tuple(columns if len(columns) == 3 else columns[:2]) or None

    def trials(self) -> tuple[Tensor, Tensor] | None:
        """Return the probability of the second of two classes, (N,), float64, and whether it is the label, (N,).

        Returns:
            The two tensors; None if there are weights or more classes, or if one of the two classes is absent.
        """
        columns = self._columns()[2:]
        return (columns[0], columns[1]) if len(columns) == 2 and 0 < columns[1].sum() < len(columns[1]) else None

    def _columns(self) -> list[Tensor]:
        return [torch.cat(parts) for parts in zip(*self._parts, strict=True)]
