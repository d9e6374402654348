"""Measure each group of a column while the rows of a file are scored."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics, inputs_of
from mpcs_torch.scoring.chunks import Chunk, PredictionsError
from mpcs_torch.scoring.group_rows import rows_by_group
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.own_intervals import own_intervals
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.scores import Scores

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.metric_set import States

NUMBERS = 2**27
"""The most numbers (1 GiB) that the states of all groups may hold."""
WAITING = 2**20
"""Scores that wait until their groups are measured (8 MiB): few rows of each of many groups would take long."""


class GroupedMetrics:
    """Measure each group of a column.

    Args:
        path: The file.
        column: The column of groups.
        chosen: The metrics.
        resamples: The number of resamples for intervals; 0 for none.
    """

    def __init__(self, path: Path, column: str, chosen: ChosenMetrics, resamples: int) -> None:
        self._path, self._column, self._chosen, self._resamples = path, column, chosen, resamples
        self._metrics = chosen.make()
        """One set measures all groups in turn: making one takes longer than measuring a few rows."""
        self._states: dict[int, States] = {}
        self._rows = dict[int, int]()
        self._numbers = 0
        self._waiting: list[tuple[Tensor, Tensor, Tensor]] = []
        self._is_clustered = False
        self.means = RowMeans(resamples)
        """Sums that intervals need."""
        self.means.begin(chosen)

    def add(self, chunk: Chunk, codes: Tensor, clusters: Tensor | None) -> None:
        """Add the next rows, and the code of the group of each, and of its cluster if rows are not independent.

        Raises:
            PredictionsError: If there are too many groups.
        """
        self._is_clustered = clusters is not None
        if self._resamples:
            self.means.add(chunk, codes, clusters)
        self._waiting.append((chunk.scores, chunk.target, codes))
        if sum(scores.numel() for scores, *_ in self._waiting) >= WAITING:
            self._measure()

    def scores(self, model: str, names: list[str], pooled: Scores) -> GroupScores:
        """Return what was measured of a model whose groups have names.

        Intervals are those of independent rows; metrics of hard labels by clusters have none yet.

        Raises:
            PredictionsError: As `add`.
        """
        self._measure()
        has_intervals = self._resamples > 0 and (self._chosen.is_soft or not self._is_clustered)
        groups = {}
        for code, states in self._states.items():
            self._metrics.load(states)
            values, confusion = self._metrics.results()
            found = pooled._replace(
                rows=self._rows[code],
                values=values,
                confusion=confusion,
                intervals={},
                class_intervals={},
                reported=None,
                measured=None,
            )
            if has_intervals:
                found = own_intervals(found, self._chosen.concern, self.means, self._resamples, code)
            groups[names[code]] = found._replace(confusion=None)  # of many classes, all of them would take much memory
        directions = {entry.name: entry.direction for entry in self._chosen.entries if not entry.is_count}
        directions = directions or {entry.name: entry.direction for entry in self._chosen.entries}
        return GroupScores(model, self._column, pooled, groups, directions)

    def _measure(self) -> None:
        """Measure the rows that wait."""
        from mpcs_torch.metrics.metric_set import numbers_in

        if not self._waiting:
            return
        scores, target, codes = (torch.cat(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        for code, rows in rows_by_group(codes):
            before = self._states.get(code)
            self._metrics.load(before)
            self._metrics.update(inputs_of(scores[rows], self._metrics.takes), target[rows])
            self._states[code] = self._metrics.states()
            self._rows[code] = self._rows.get(code, 0) + len(rows)
            self._numbers += numbers_in(self._states[code]) - numbers_in(before or [])
            if self._numbers + self.means.numbers > NUMBERS:
                rule = f"column {quoted(self._column)} must have fewer groups"
                sums = f"the sums of {len(self._states)} groups with {self._chosen.num_classes} classes"
                raise PredictionsError(self._path, f"{rule}: {sums} take more than {8 * NUMBERS >> 30} GiB")
