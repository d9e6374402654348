"""A set of metrics of the same samples, each of which is updated with the kind of input that it needs."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.register import MetricEntry, Takes


class Group(NamedTuple):
    """Metrics with equal states; only the first metric is updated."""

    takes: Takes
    metrics: dict[str, Metric]
    """The metrics by name."""

    @property
    def first(self) -> Metric:
        """The metric that is updated; all metrics of the group use its states."""
        return next(iter(self.metrics.values()))


class MetricSet:
    """The metrics of several entries of the register; metrics with equal states share one copy of the states.

    Values of a batch are not validated, because they come from a model or were validated before.
    """

    def __init__(self, entries: Sequence[MetricEntry], num_classes: int, device: torch.device, **settings: Any) -> None:
        """Create a metric for each entry; ``settings``, such as ``concern``, are for all metrics that have them."""
        self.entries = tuple(entries)
        self._settings, self._device = {"num_classes": num_classes, "validate_args": False, **settings}, device
        groups: dict[Hashable, Group] = {}
        metrics: dict[Hashable, Metric] = {}  # entries that are keys of what one metric computes have the same metric
        for entry in entries:
            kind = id(entry) if entry.made is not None else (entry.metric, entry.takes, repr(entry.settings))
            metric = metrics[kind] = metrics.get(kind) or self._create(entry)
            group = groups.setdefault(_states_key(entry, metric), Group(entry.takes, {}))
            if group.metrics:  # share states, which take much memory if there are many classes
                metric.__dict__.update({**group.first.metric_state, "_defaults": group.first._defaults})
            group.metrics[entry.name] = metric
        self.groups = tuple(groups.values())
        """The groups of metrics with equal states."""

    @property
    def takes(self) -> frozenset[Takes]:
        """The kinds of input, such as ``"decisions"``, that the metrics take."""
        return frozenset(group.takes for group in self.groups)

    def reset(self) -> None:
        """Reset all metrics."""
        for group in self.groups:
            group.first.reset()

    def update(self, inputs: Mapping[Takes, Tensor], target: Tensor, *weights: Tensor) -> None:
        """Add a batch: predictions by kind of input (``"decisions"``, ...), targets (N, ...) and sample weights."""
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
            # A process without samples must compute from the gathered states without a warning.
            shared = {**first.metric_state, "_update_count": max(1, first._update_count), "_computed": None}
            for metric in group.metrics.values():
                metric.__dict__.update(shared)
        return {name: metric for group in self.groups for name, metric in group.metrics.items()}

    @contextmanager
    def gathered(self) -> Iterator[dict[str, Metric]]:
        """Yield the metrics by name, with the states of all processes in the process group."""
        with ExitStack() as stack:
            for group in self.groups:
                stack.enter_context(group.first.sync_context())
            yield self.metrics()

    def values(self) -> dict[str, float]:
        """Return the value of each entry by name, over the samples of all processes in the process group."""
        values = {}
        with self.gathered() as metrics:
            for entry in self.entries:
                values[entry.name] = entry.value(metrics[entry.name])
        return values


def _states_key(entry: MetricEntry, metric: Metric) -> Hashable:
    """Return a key that is equal for metrics with equal states, and unique for a metric that is not a `SumMetric`."""
    if not isinstance(metric, SumMetric):
        return id(metric)
    return entry.takes, type(metric).update, tuple(metric.settings.tolist())
