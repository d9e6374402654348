"""Intervals of metrics that are means over rows, from the sums and squares of the values of all rows."""

from collections.abc import Mapping
from math import isfinite, sqrt
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.concern.expected_concern import decide
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.count_intervals import CONFIDENCE, Interval, cost_interval, interval_of_drawn
from mpcs_torch.scoring.row_values import Mean, means_of

LEAST_COST = "least_concern_cost"
MOST_CLASSES = 1000
"""With more, the matrix of decisions by cost, of which the metric itself holds only sums, is not counted."""
ALL_ROWS, SAMPLED = 100_000, 10
"""Of files with more rows, one in so many of the others tells how far slow values vary: to 1 % of their deviation."""


class RowMeans:
    """Add up, row by row, the values whose means are metrics; a listener of `score`.

    Args:
        resamples: The number of resamples for decisions by cost.
    """

    def __init__(self, resamples: int) -> None:
        self._resamples = resamples
        self._sums = self._squares = self._counts = torch.zeros(0, dtype=torch.float64)
        self.means: list[Mean] = []
        self.slow: list[Mean] = []
        self._rows = 0
        self._generator = torch.Generator().manual_seed(0)
        self.costs: Tensor | None = None

    def begin(self, chosen: ChosenMetrics) -> None:
        """Learn the metrics, before the first row."""
        from mpcs_torch.metrics.concern.expected_concern import cost_matrix

        found = [] if chosen.is_soft else [mean for entry in chosen.entries for mean in means_of(entry, chosen)]
        self.means, self.slow = ([mean for mean in found if mean.is_slow == is_slow] for is_slow in (False, True))
        self._slow_sums = torch.zeros(3, len(self.slow), dtype=torch.float64)
        self._sums = self._squares = torch.zeros(0, len(self.means), dtype=torch.float64)
        names = {entry.name for entry in chosen.entries}
        if chosen.concern is not None and LEAST_COST in names and chosen.num_classes <= MOST_CLASSES:
            self.costs = cost_matrix(chosen.concern, chosen.num_classes)
            self._decided = torch.zeros(self.costs.numel(), dtype=torch.int64)

    def add(self, chunk: Chunk, codes: Tensor | None = None) -> None:
        """Add the next rows, and the code of the group of each if they are told apart."""
        self._rows += len(chunk.scores)
        if self.costs is not None:
            self._count_decisions(chunk, self.costs)
        if codes is None and self.slow:
            self._add_slow(chunk)
        if not self.means:
            return
        codes = torch.zeros(len(chunk.scores), dtype=torch.int64) if codes is None else codes
        values = torch.stack([mean.of_rows(chunk.scores, chunk.target) for mean in self.means], dim=1)
        more = int(codes.max()) + 1 - len(self._counts)
        if more > 0:
            wider = self._sums.new_zeros(max(more, len(self._counts)), len(self.means))  # twice as many, or enough
            self._sums, self._squares = torch.cat([self._sums, wider]), torch.cat([self._squares, wider])
            self._counts = torch.cat([self._counts, wider.new_zeros(len(wider))])
        self._sums.index_add_(0, codes, values)
        self._squares.index_add_(0, codes, values.square())
        self._counts.index_add_(0, codes, values.new_ones(len(values)))

    def intervals(self, values: Mapping[str, float]) -> dict[str, Interval]:
        """Return the t-intervals of the means over all rows, which are independent of each other.

        Args:
            values: The metrics themselves: a sample of the rows says how far slow ones vary, but not where they are.
        """
        rows = self._rows
        if rows < 2:
            return {}
        from scipy.special import stdtrit  # scipy.stats takes longer to import

        quantile = -float(stdtrit(rows - 1, (1 - CONFIDENCE) / 2))
        of_all = zip(self.means, self._sums.sum(0).tolist(), self._squares.sum(0).tolist(), strict=True)
        sampled = zip(self.slow, *(self._slow_sums[1:] / self._slow_sums[0] * rows).tolist(), strict=True)
        found = {}
        for mean, total, squares in (*of_all, *sampled):
            middle = values[mean.name] if mean.is_slow else total / rows
            half = quantile * sqrt(max(0.0, squares / rows - (total / rows) ** 2) / (rows - 1))
            if isfinite(half) and half > 1e-7 * middle:  # else all rows are the same, up to rounding
                ends = mean.of_mean(max(0.0, middle - half)), mean.of_mean(middle + half)
                found[mean.name] = min(ends), max(ends)
        return found

    def cost_interval(self) -> dict[str, Interval]:
        """Return the interval of the cost of decisions by cost, if it is measured with a concern."""
        if self.costs is None:
            return {}
        found = cost_interval(self._decided.view_as(self.costs), self.costs, self._resamples)
        return {} if found is None else {LEAST_COST: found}

    def clustered(self, weights: Tensor) -> dict[str, Interval]:
        """Return the intervals of the means, from how often each of R resamples draws each group: (R, groups)."""
        if not self.means:
            return {}
        number = weights.shape[1]
        drawn = weights.double()
        values = (drawn @ self._sums[:number]) / (drawn @ self._counts[:number]).unsqueeze(1)
        found = {}
        for mean, of_mean in zip(self.means, values.t(), strict=True):
            ends = interval_of_drawn(of_mean, number)
            if ends is not None:
                shown = [mean.of_mean(end) for end in ends]
                found[mean.name] = min(shown), max(shown)
        return found

    def _add_slow(self, chunk: Chunk) -> None:
        """Add rows of the slow values, weighted so that all parts of the file count alike."""
        scores, target, weight = chunk.scores, chunk.target, 1
        if self._rows > ALL_ROWS:
            weight = SAMPLED
            drawn = torch.rand(len(scores), generator=self._generator) < 1 / weight
            scores, target = scores[drawn], target[drawn]
        values = torch.stack([mean.of_rows(scores, target) for mean in self.slow], dim=1)
        of_rows = torch.stack([torch.ones_like(values), values, values.square()])
        self._slow_sums += weight * of_rows.sum(dim=1)

    def _count_decisions(self, chunk: Chunk, costs: Tensor) -> None:
        settings: dict[str, Any] = {"ratio": None, "ignore_index": None, "sample_weight": None}
        decided = decide(
            chunk.scores, chunk.target, concern=costs, decision="least_concern", from_logits=False, **settings
        )
        columns = costs.shape[1]
        cells = chunk.target * columns + decided.predicted % columns  # a referral, -1, has the last column
        self._decided += cells.bincount(minlength=costs.numel())
