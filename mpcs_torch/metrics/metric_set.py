"""A set of metrics over the same samples, each updated with its own kind of input."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.register import MetricEntry, Takes


class Group(NamedTuple):
    """Metrics with equal states, of which only the first is updated."""

    takes: Takes
    metrics: dict[str, Metric]
    """By name."""

    @property
    def first(self) -> Metric:
        """The metric that is updated."""
        return next(iter(self.metrics.values()))


class MetricSet:
    """The metrics of register entries, with shared states where these are equal.

    Values are not validated: predictions come from a model, or have been validated before.
    """

    def __init__(self, entries: Sequence[MetricEntry], num_classes: int, device: torch.device, **settings: Any) -> None:
        """Create the metrics.

        Args:
            entries: One for each value.
            num_classes: C.
            device: The device of the predictions.
            **settings: Shared settings, e.g. ``concern``, for the metrics that have them.

        Raises:
            ValueError: If a setting breaks a rule of its metric.
        """
        self.entries = tuple(entries)
        self._settings, self._device = {"num_classes": num_classes, "validate_args": False, **settings}, device
        groups: dict[Hashable, Group] = {}
        keyed: list[tuple[MetricEntry, Metric]] = []
        for entry in entries:
            # Entries that differ only by key read different values of one metric, computed once.
            twins = (made for other, made in keyed if (entry.metric, entry.settings) == (other.metric, other.settings))
            twin = None if entry.key is None else next(twins, None)
            metric = self._create(entry) if twin is None else twin
            keyed += [] if entry.key is None else [(entry, metric)]
            group = groups.setdefault(_states_key(entry, metric), Group(entry.takes, {}))
            if group.metrics:  # with many classes, separate states would take much memory
                metric.__dict__.update({**group.first.metric_state, "_defaults": group.first._defaults})
            group.metrics[entry.name] = metric
        self.groups = tuple(groups.values())
        """Metrics with equal states."""

    @property
    def takes(self) -> frozenset[Takes]:
        """The kinds of input of the metrics."""
        return frozenset(group.takes for group in self.groups)

    def reset(self) -> None:
        """Reset all metrics."""
        for group in self.groups:
            group.first.reset()

    def update(self, inputs: Mapping[Takes, Tensor], target: Tensor, *weights: Tensor) -> None:
        """Add a batch: predictions by kind of input, the target, and optional sample weights."""
        for group in self.groups:
            group.first.update(inputs[group.takes], target, *weights)

    def _create(self, entry: MetricEntry) -> Metric:
        metric = entry.make(**self._settings).to(self._device)
        metric.sync_on_compute = metric._to_sync = False  # `values` gathers the states of each group once
        return metric

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics by name, with the states of this process."""
        for group in self.groups:
            first = group.first
            # A process without samples computes from the gathered states, without a warning.
            shared = {**first.metric_state, "_update_count": max(1, first._update_count), "_computed": None}
            for metric in group.metrics.values():
                metric.__dict__.update(shared)
        return {name: metric for group in self.groups for name, metric in group.metrics.items()}

    @contextmanager
    def gathered(self) -> Iterator[dict[str, Metric]]:
        """Yield the metrics by name, with the states of all processes in the group."""
        with ExitStack() as stack:
            for group in self.groups:
                stack.enter_context(group.first.sync_context())
            yield self.metrics()

    def values(self) -> dict[str, float]:
        """Compute the value of each entry over the samples of all processes in the group."""
        values = {}
        with self.gathered() as metrics:
            for entry in self.entries:
                values[entry.name] = entry.value(metrics[entry.name])
        return values


def _states_key(entry: MetricEntry, metric: Metric) -> Hashable:
    """Return a key that is equal for metrics with equal states; unique for a metric that is not a `SumMetric`."""
    if not isinstance(metric, SumMetric):
        return id(metric)
    return entry.takes, type(metric).update, tuple(metric.settings.tolist())
