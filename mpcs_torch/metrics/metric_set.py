"""Several metrics over the same samples, each fed what it takes."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.by_name import MetricEntry, Takes


class Group(NamedTuple):
    """Metrics whose states are equal after any batches: only the first of them is updated."""

    takes: Takes
    metrics: dict[str, Metric]
    """By name."""

    @property
    def first(self) -> Metric:
        """The metric that is updated."""
        return next(iter(self.metrics.values()))


class MetricSet:
    """The metrics of some entries of the register, with equal states shared between them.

    Values of predictions are not checked: what is measured comes from a model, or has been checked already.
    """

    def __init__(self, entries: Sequence[MetricEntry], num_classes: int, device: torch.device, **given: Any) -> None:
        """Make the metrics.

        Args:
            entries: One for each value.
            num_classes: C.
            device: Where the predictions lie.
            **given: Settings of the surroundings, such as ``concern``, for the metrics that have them.

        Raises:
            ValueError: If a setting breaks a rule of its metric.
        """
        self.entries = tuple(entries)
        self._around, self._device = {"num_classes": num_classes, "validate_args": False, **given}, device
        groups: dict[Hashable, Group] = {}
        keyed: list[tuple[MetricEntry, Metric]] = []
        for entry in entries:
            # Entries that differ by their key alone take values of one metric, which is then computed once.
            twins = (made for other, made in keyed if (entry.metric, entry.settings) == (other.metric, other.settings))
            twin = None if entry.key is None else next(twins, None)
            metric = self._made(entry) if twin is None else twin
            keyed += [] if entry.key is None else [(entry, metric)]
            group = groups.setdefault(_states_key(entry, metric), Group(entry.takes, {}))
            if group.metrics:  # of many classes, a state of its own would take much memory
                metric.__dict__.update({**group.first.metric_state, "_defaults": group.first._defaults})
            group.metrics[entry.name] = metric
        self.groups = tuple(groups.values())
        """Metrics with equal states."""

    @property
    def takes(self) -> frozenset[Takes]:
        """The inputs that the metrics take."""
        return frozenset(group.takes for group in self.groups)

    def reset(self) -> None:
        """Forget all batches."""
        for group in self.groups:
            group.first.reset()

    def update(self, inputs: Mapping[Takes, Tensor], target: Tensor, *weights: Tensor) -> None:
        """Add a batch: the predictions in each form that a metric takes, the target, and weights of the samples."""
        for group in self.groups:
            group.first.update(inputs[group.takes], target, *weights)

    def _made(self, entry: MetricEntry) -> Metric:
        metric = entry.make(**self._around).to(self._device)
        metric.sync_on_compute = metric._to_sync = False  # `values` gathers the states of each group once
        return metric

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics by name, with the states of this process."""
        for group in self.groups:
            first = group.first
            # A process without samples of its own computes from the states of others, without a warning.
            shared = {**first.metric_state, "_update_count": max(1, first._update_count), "_computed": None}
            for metric in group.metrics.values():
                metric.__dict__.update(shared)
        return {name: metric for group in self.groups for name, metric in group.metrics.items()}

    @contextmanager
    def gathered(self) -> Iterator[dict[str, Metric]]:
        """Give the metrics by name, with the states of all processes that have joined."""
        with ExitStack() as stack:
            for group in self.groups:
                stack.enter_context(group.first.sync_context())
            yield self.metrics()

    def values(self) -> dict[str, float]:
        """Compute the value of each entry, in their order, of the samples of all processes that have joined."""
        values = {}
        with self.gathered() as metrics:
            for entry in self.entries:
                values[entry.name] = entry.value(metrics[entry.name])
        return values


def _states_key(entry: MetricEntry, metric: Metric) -> Hashable:
    """Return a key that metrics share whose states are equal after any batches; others' metrics share none."""
    if not isinstance(metric, SumMetric):
        return id(metric)
    return entry.takes, type(metric).update, tuple(metric.settings.tolist())
