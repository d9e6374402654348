"""The estimated risk of each row, and for two classes its score, for figures of certainty."""

from array import array
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mpcs_torch.functional.concern.risk_coverage_area import risks_of
from mpcs_torch.processes.world import World
from mpcs_torch.scoring.chunks import Chunk

if TYPE_CHECKING:
    from mpcs_torch.evaluation.chosen import ChosenMetrics

MOST_CLASSES = 1000
"""With more, pairs of classes would take much memory."""


class RowRisks:
    """Keep the risk of each row that its decision is a dangerous error, as its probabilities estimate it.

    Held for a row are 5 bytes, and 9 more for two classes. Nothing is held for soft labels, or
    for more classes than `MOST_CLASSES`, of which the pairs would take much memory.
    """

    def __init__(self) -> None:
        self._risks, self._scores = array("f"), array("d")
        self._dangerous, self._labels = bytearray(), bytearray()
        self._pairs: Tensor | None = None

    def begin(self, chosen: "ChosenMetrics") -> None:
        """Learn which errors are dangerous, before the first row."""
        from mpcs_torch.metrics.concern.dangerous import dangerous_pairs_of

        if not chosen.is_soft and chosen.num_classes <= MOST_CLASSES:
            self._pairs = dangerous_pairs_of(chosen.concern, chosen.num_classes)

    def add(self, chunk: Chunk) -> None:
        """Add the next rows."""
        if self._pairs is None:
            return
        decisions = chunk.scores.argmax(dim=1)
        risks = risks_of(chunk.scores, decisions, self._pairs)
        self._risks.frombytes(risks.float().numpy().tobytes())
        self._dangerous += self._pairs[chunk.target, decisions].numpy().tobytes()
        if len(self._pairs) == 2:
            self._scores.frombytes(chunk.scores[:, 1].double().numpy().tobytes())
            self._labels += (chunk.target == 1).numpy().tobytes()

    def gather(self, world: World) -> None:
        """Add the rows of other processes, who read other parts of the file."""
        parts = world.told_by_all((self._risks, self._scores, self._dangerous, self._labels))
        self._risks, self._scores, self._dangerous, self._labels = array("f"), array("d"), bytearray(), bytearray()
        for risks, scores, dangerous, labels in parts:
            self._risks += risks
            self._scores += scores
            self._dangerous += dangerous
            self._labels += labels

    def risks(self) -> tuple[Tensor, Tensor] | None:
        """Return the risks, float32 (N,), and which decisions are dangerous errors, bool (N,); None if not held."""
        if not self._risks:
            return None
        return torch.frombuffer(self._risks, dtype=torch.float32), torch.frombuffer(self._dangerous, dtype=torch.bool)

    def trials(self) -> tuple[Tensor, Tensor] | None:
        """Return the probabilities of the second of two classes, float64 (N,), and whether it is true, bool (N,).

        Returns:
            None for more classes, or if one of the two is absent.
        """
        labels = torch.frombuffer(self._labels, dtype=torch.bool) if self._labels else None
        if labels is None or bool(labels.all()) or not bool(labels.any()):
            return None
        return torch.frombuffer(self._scores, dtype=torch.float64), labels
