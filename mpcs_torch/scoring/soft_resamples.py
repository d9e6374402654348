"""Intervals of metrics of soft labels: their sums in Poisson resamples, added up while rows are read."""

from collections.abc import Mapping
from math import inf, nan
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.soft_labels import flatten_soft
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.count_intervals import HELD, Interval, interval_around
from mpcs_torch.scoring.poisson_draws import poisson_draws

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.metric_set import Group


class SoftResamples:
    """Add up the sums of each resample, for each group of rows, so that memory does not grow with the rows.

    The value of a resample comes from the functions that compute the value of the file.

    Args:
        chosen: The metrics, all of soft labels.
        resamples: R, the number of resamples.
    """

    def __init__(self, chosen: ChosenMetrics, resamples: int) -> None:
        self._resamples = resamples
        self._metrics: tuple[Group, ...] = chosen.make().groups
        self._updated: list[Any] = [of_group.first for of_group in self._metrics]
        self._sums = dict[int, list[Any]]()
        self._rows = dict[int, int]()
        self.numbers = 0
        """Numbers that are held."""

    def add(self, group: int, probs: Tensor, target: Tensor, clusters: Tensor | None) -> None:
        """Add the next rows of a group, with the code of the cluster of each; without, rows are independent."""
        start = self._rows.get(group, 0)
        units = torch.arange(start, start + len(probs)) if clusters is None else clusters
        self._rows[group] = start + len(probs)
        step = max(1, HELD // self._resamples)
        for first in range(0, len(probs), step):
            rows = slice(first, first + step)
            samples = flatten_soft(probs[rows], target[rows], num_classes=None, sample_weight=None, ignore=None)
            drawn = samples._replace(draws=poisson_draws(units[rows], self._resamples))
            more = [metric.sums_of(drawn) for metric in self._updated]
            held = self._sums.get(group)
            if held is None:
                self._sums[group] = more
                self.numbers += sum(summed.numel() for sums in more for summed in sums)
            else:
                for sums, found in zip(held, more, strict=True):
                    for summed, one in zip(sums, found, strict=True):
                        summed += one

    def intervals(self, values: Mapping[str, float], group: int, independent: int) -> dict[str, Interval]:
        """Return the intervals of the metrics of a group, of which so many rows or clusters are independent."""
        found = dict[str, Interval]()
        for of_group, sums in zip(self._metrics, self._sums[group], strict=True):
            for name, metric in of_group.metrics.items():
                made: Any = metric
                highest = inf if made.plot_upper_bound is None else made.plot_upper_bound
                drawn = made.value_of(sums)
                if getattr(made, "average", None) == "macro":  # the F of a class without labels says nothing about it
                    drawn = torch.where((sums.actual == 0).any(-1), nan, drawn)
                interval = interval_around(values[name], drawn, independent, highest=highest)
                found |= {} if interval is None else {name: interval}
        return found
