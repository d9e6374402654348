"""Metrics of the same samples, in groups that share their sums or states."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.measure import Measure
from mpcs_torch.metrics.register import MetricEntry, Takes

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from torchmetrics import Metric


class MeasureGroup(NamedTuple):
    """Measures with equal sums."""

    takes: Takes
    measures: dict[str, Measure[Any, Any]]
    """The measures by the name of their entry."""

    @property
    def first(self) -> Measure[Any, Any]:
        """The measure that computes the sums of all."""
        return next(iter(self.measures.values()))

    def values(self, sums: Any) -> dict[str, Any]:
        """Return the value of each measure by name; names of one measure share its computation."""
        computed = {id(measure): measure.value(sums) for measure in self.measures.values()}
        return {name: computed[id(measure)] for name, measure in self.measures.items()}


class MetricGroup(NamedTuple):
    """A Metric that computes the values of several entries."""

    takes: Takes
    metric: "Metric"
    entries: list[MetricEntry]


def measure_groups(entries: Iterable[MetricEntry], num_classes: int, **settings: Any) -> list[MeasureGroup]:
    """Make the measures of the entries that are measures; ``settings`` are for all measures that have them."""
    groups, made = dict[Hashable, MeasureGroup](), dict[Hashable, Measure[Any, Any] | None]()
    for entry in entries:
        kind = id(entry) if entry.made is not None else (entry.of, entry.takes, repr(entry.settings))
        made[kind] = measure = made.get(kind) or entry.measure(num_classes, **settings)
        if measure is not None:
            key = entry.takes, tuple(measure.fingerprint().tolist())
            groups.setdefault(key, MeasureGroup(entry.takes, {})).measures[entry.name] = measure
    return [*groups.values()]


def metric_groups(entries: Iterable[MetricEntry], num_classes: int, **settings: Any) -> list[MetricGroup]:
    """Make the Metrics of the entries that are no measures; ``settings`` are for all metrics that have them.

    Values of a batch are not validated, because they come from a model or were validated before.
    """
    groups = dict[Hashable, MetricGroup]()
    for entry in entries:
        if entry.is_measure or entry.is_of_ranks:
            continue
        key = id(entry) if entry.made is not None else (entry.of, entry.takes, repr(entry.settings))
        if key not in groups:
            metric = entry.make(num_classes, validate_args=False, **settings)
            groups[key] = MetricGroup(entry.takes, metric, [])
        groups[key].entries.append(entry)
    return [*groups.values()]


class MetricSet:
    """The metrics of several entries of the register. Values of a batch are not validated."""

    def __init__(self, entries: Sequence[MetricEntry], num_classes: int, device: torch.device, **settings: Any) -> None:
        """Create a metric for each entry; ``settings``, such as ``concern``, are for all metrics that have them."""
        from mpcs_torch.metrics.measure_metric import MeasureMetric  # torchmetrics takes seconds to import

        self._entries = {entry.name: entry for entry in entries}
        self._sums = [
            (group, MeasureMetric(group.first, False, {}).to(device))
            for group in measure_groups(entries, num_classes, **settings)
        ]
        self._others = [
            group._replace(metric=group.metric.to(device)) for group in metric_groups(entries, num_classes, **settings)
        ]
        for entry in entries:
            if entry.is_of_ranks:
                metric = entry.make(num_classes, validate_args=False).to(device)
                self._others.append(MetricGroup(entry.takes, metric, [entry]))

    @property
    def measures(self) -> dict[str, Measure[Any, Any]]:
        """The measures by the name of their entry."""
        return {name: measure for group, _ in self._sums for name, measure in group.measures.items()}

    @property
    def takes(self) -> frozenset[Takes]:
        """The kinds of input, such as ``"decisions"``, that the metrics take."""
        return frozenset(takes for takes, _ in self._all())

    def reset(self) -> None:
        """Reset all metrics."""
        for _, metric in self._all():
            metric.reset()

    def update(self, inputs: Mapping[Takes, Tensor], target: Tensor) -> None:
        """Add a batch: predictions by kind of input (``"decisions"``, ...), and targets (N, ...)."""
        for takes, metric in self._all():
            metric.update(inputs[takes], target)

    def values(self) -> dict[str, float]:
        """Return the value of each entry by name, over the samples of all processes in the process group."""
        values = dict[str, float]()
        for group, metric in self._sums:
            with metric.gathered():
                computed = group.values(metric.named_sums())
            values.update({name: self._entries[name].number(value) for name, value in computed.items()})
        for _, other, own in self._others:
            # A process without samples must compute from the gathered states without a warning.
            other._update_count = max(1, other._update_count)
            computed = other.compute()
            values.update({entry.name: entry.number(computed) for entry in own})
        return {name: values[name] for name in self._entries}

    def _all(self) -> "list[tuple[Takes, Metric]]":
        sums: list[tuple[Takes, Metric]] = [(group.takes, metric) for group, metric in self._sums]
        return [*sums, *((group.takes, group.metric) for group in self._others)]
