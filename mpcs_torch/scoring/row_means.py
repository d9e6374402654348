"""Intervals of metrics that are means over rows, from the sums and squares of the values of all rows or of a group."""

from collections.abc import Mapping
from math import isfinite, sqrt

import torch
from torch import Tensor

from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.count_intervals import CONFIDENCE, Interval, cost_interval, interval_of_drawn
from mpcs_torch.scoring.group_rows import GroupClusters, rows_by_group
from mpcs_torch.scoring.main_measures import LEAST_COST
from mpcs_torch.scoring.row_values import Mean, decided_by_cost, means_of
from mpcs_torch.scoring.soft_resamples import SoftResamples

MOST_CLASSES = 1000
"""With more, the matrix of decisions by cost, of which the metric itself holds only sums, is not counted."""
ALL_ROWS, SAMPLED = 100_000, 10
"""Of groups with more rows, one in so many of the others tells how far slow values vary: to 1 % of their deviation."""


class RowMeans:
    """Add up the values of rows whose means are metrics, for each group of rows; a listener of `score`.

    Of soft labels, what is added up is that of `SoftResamples`.

    Args:
        resamples: The number of resamples for decisions by cost and soft labels.
    """

    def __init__(self, resamples: int) -> None:
        self._resamples = resamples
        self._sums = self._squares = self._counts = torch.zeros(0, dtype=torch.float64)
        self._clusters: GroupClusters | None = None
        self.means: list[Mean] = []
        self.slow: list[Mean] = []
        self.soft: SoftResamples | None = None
        self._generator = torch.Generator().manual_seed(0)
        self.costs: Tensor | None = None

    def begin(self, chosen: ChosenMetrics) -> None:
        """Learn the metrics, before the first row."""
        from mpcs_torch.metrics.concern.expected_concern import cost_matrix

        self.soft = SoftResamples(chosen, self._resamples) if chosen.is_soft else None
        found = [] if chosen.is_soft else [mean for entry in chosen.entries for mean in means_of(entry, chosen)]
        self.means, self.slow = ([mean for mean in found if mean.is_slow == is_slow] for is_slow in (False, True))
        self._slow_sums = torch.zeros(0, 3, len(self.slow), dtype=torch.float64)
        self._sums = self._squares = torch.zeros(0, len(self.means), dtype=torch.float64)
        names = {entry.name for entry in chosen.entries}
        self._decided = torch.zeros(0, 0, dtype=torch.int64)
        if chosen.concern is not None and LEAST_COST in names and chosen.num_classes <= MOST_CLASSES:
            self.costs = cost_matrix(chosen.concern, chosen.num_classes)
            self._decided = torch.zeros(0, self.costs.numel(), dtype=torch.int64)

    @property
    def numbers(self) -> int:
        """The number of values that are held."""
        held = (self._sums, self._squares, self._counts, self._slow_sums, self._decided)
        return sum(tensor.numel() for tensor in held) + (0 if self.soft is None else self.soft.numbers)

    def add(self, chunk: Chunk, groups: Tensor | None = None, clusters: Tensor | None = None) -> None:
        """Add the next rows, with the code of the group of each, and of the cluster, if there are any."""
        groups = torch.zeros(len(chunk.scores), dtype=torch.int64) if groups is None else groups
        codes = groups
        if clusters is not None:
            self._clusters = self._clusters or GroupClusters()
            codes = self._clusters.add(groups, clusters)
        size = int(codes.max()) + 1
        self._counts, self._sums, self._squares = (
            _grown(held, size) for held in (self._counts, self._sums, self._squares)
        )
        self._counts.index_add_(0, codes, torch.ones(len(codes), dtype=torch.float64))
        if self.soft is not None:
            for group, rows in rows_by_group(groups):
                own = None if clusters is None else clusters[rows]
                self.soft.add(group, chunk.scores[rows], chunk.target[rows], own)
        if clusters is None and self.costs is not None:
            self._count_decisions(chunk, groups, self.costs)
        if clusters is None and self.slow:
            self._add_slow(chunk, groups)
        if self.means:
            values = torch.stack([mean.of_rows(chunk.scores, chunk.target) for mean in self.means], dim=1)
            self._sums.index_add_(0, codes, values)
            self._squares.index_add_(0, codes, values.square())

    def intervals(self, values: Mapping[str, float], group: int = 0) -> dict[str, Interval]:
        """Return the intervals of a group: of soft labels all; otherwise t-intervals of means over independent rows.

        Args:
            values: The metrics themselves: a sample of the rows says how far slow ones vary, but not where they are.
            group: Its code.
        """
        rows = int(self._counts[group]) if self._clusters is None else len(self._clusters.of(group))
        if rows < 2:
            return {}
        if self.soft is not None:
            return self.soft.intervals(values, group, rows)
        from scipy.special import stdtrit  # scipy.stats takes longer to import

        quantile = -float(stdtrit(rows - 1, (1 - CONFIDENCE) / 2))
        of_all = zip(self.means, self._sums[group].tolist(), self._squares[group].tolist(), strict=True)
        slow = self._slow_sums[group] if self.slow else torch.ones(3, 0)
        sampled = zip(self.slow, *(slow[1:] / slow[0] * rows).tolist(), strict=True)
        found = {}
        for mean, total, squares in (*of_all, *sampled):
            middle = values[mean.name] if mean.is_slow else total / rows
            half = quantile * sqrt(max(0.0, squares / rows - (total / rows) ** 2) / (rows - 1))
            if isfinite(half) and half > 1e-7 * middle:  # else all rows are the same, up to rounding
                ends = mean.of_mean(max(0.0, middle - half)), mean.of_mean(middle + half)
                found[mean.name] = min(ends), max(ends)
        return found

    def cost_interval(self, group: int = 0) -> dict[str, Interval]:
        """Return the interval of the cost of decisions by cost of a group, if it is measured with a concern."""
        if self.costs is None:
            return {}
        found = cost_interval(self._decided[group].view_as(self.costs), self.costs, self._resamples)
        return {} if found is None else {LEAST_COST: found}

    def clustered(self, weights: Tensor, group: int = 0) -> dict[str, Interval]:
        """Return the intervals of the means of a group, from how often R resamples draw each cluster: (R, clusters)."""
        if not self.means or self._clusters is None:
            return {}
        places, drawn = self._clusters.of(group), weights.double()
        values = (drawn @ self._sums[places]) / (drawn @ self._counts[places]).unsqueeze(1)
        found = {}
        for mean, of_mean in zip(self.means, values.t(), strict=True):
            ends = interval_of_drawn(of_mean, len(places))
            if ends is not None:
                shown = [mean.of_mean(end) for end in ends]
                found[mean.name] = min(shown), max(shown)
        return found

    def _add_slow(self, chunk: Chunk, groups: Tensor) -> None:
        """Add rows of the slow values, weighted so that all rows of a group count alike."""
        scores, target = chunk.scores, chunk.target
        is_sampled = self._counts[groups] > ALL_ROWS
        weight = torch.where(is_sampled, float(SAMPLED), 1.0).double()
        if is_sampled.any():
            drawn = ~is_sampled | (torch.rand(len(scores), generator=self._generator) < 1 / SAMPLED)
            scores, target, groups, weight = scores[drawn], target[drawn], groups[drawn], weight[drawn]
        values = torch.stack([mean.of_rows(scores, target) for mean in self.slow], dim=1)
        of_rows = torch.stack([torch.ones_like(values), values, values.square()], dim=1)
        self._slow_sums = _grown(self._slow_sums, len(self._counts))
        self._slow_sums.index_add_(0, groups, weight.view(-1, 1, 1) * of_rows)

    def _count_decisions(self, chunk: Chunk, groups: Tensor, costs: Tensor) -> None:
        columns = costs.shape[1]
        decided = decided_by_cost(chunk.scores, chunk.target, costs)
        cells = chunk.target * columns + decided % columns  # a referral, -1, has the last column
        self._decided = _grown(self._decided, len(self._counts))
        places = groups * costs.numel() + cells
        self._decided.view(-1).index_add_(0, places, torch.ones_like(places))


def _grown(held: Tensor, size: int) -> Tensor:
    """Return sums with zeros after them, so that there are at least so many: twice as many, or enough."""
    more = size - len(held)
    return held if more <= 0 else torch.cat([held, held.new_zeros(max(more, len(held)), *held.shape[1:])])
