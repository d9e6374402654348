"""The risks of rows, which reports need beside sums: that a decision is a dangerous error, by its probabilities."""

import torch
from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.concern.dangerous import dangerous_pairs_of
from mpcs_torch.functional.concern.risk_coverage_area import risks_of
from mpcs_torch.functional.inputs.most_probable import highest_class

MAX_CLASSES = 1000
"""With more, pairs of classes would take much memory."""


class RowRisks:
    """Keep the risk of each row that its decision is a dangerous error, as its probabilities estimate it.

    Held for a row are 5 bytes, and 9 more for two classes, or 8 for a weight. Nothing is held for soft labels, or for
    more classes than `MAX_CLASSES`, of which the pairs would take much memory.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, ...]] = []
        """Risks, whether decisions are dangerous, and weights, or for two classes scores and labels of the second."""
        self._pairs: Tensor | None = None
        self.is_weighted = False

    def begin(self, chosen: ChosenMetrics) -> None:
        """Learn which errors are dangerous, before the first row."""
        if not (chosen.is_soft or chosen.is_decided) and chosen.num_classes <= MAX_CLASSES:
            self._pairs = dangerous_pairs_of(chosen.concern, chosen.num_classes)

    def add(self, rows: Rows) -> None:
        """Add the next rows."""
        self.is_weighted = rows.weights is not None
        if self._pairs is None:
            return
        decisions = highest_class(rows.probs)[1]
        columns = [risks_of(rows.probs, decisions, self._pairs).float(), self._pairs[rows.target, decisions]]
        if rows.weights is not None:
            columns.append(rows.weights)
        elif len(self._pairs) == 2:
            columns += [rows.probs[:, 1].clone(), rows.target == 1]
        self._parts.append(tuple(columns))

    def risks(self) -> tuple[Tensor, ...] | None:
        """Return the risks, float32 (N,), which decisions are dangerous errors, bool, and weights; None if not held."""
        columns = self._columns()
        return tuple(columns if len(columns) == 3 else columns[:2]) or None

    def trials(self) -> tuple[Tensor, Tensor] | None:
        """Return the probabilities of the second of two classes, float64 (N,), and whether it is true, bool (N,).

        Returns:
            None for more classes, or if one of the two is absent.
        """
        columns = self._columns()[2:]
        return (columns[0], columns[1]) if len(columns) == 2 and 0 < columns[1].sum() < len(columns[1]) else None

    def _columns(self) -> list[Tensor]:
        return [torch.cat(parts) for parts in zip(*self._parts, strict=True)]
