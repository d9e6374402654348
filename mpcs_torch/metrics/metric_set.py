"""Several metrics over the same samples, each fed what it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.by_name import MetricEntry, Takes
from mpcs_torch.metrics.quality.confusion import ConfusionMetric


class Results(NamedTuple):
    """The values of the metrics of a set."""

    values: dict[str, float]
    """By name."""
    confusion: Tensor | None
    """int64 (C, C), rows true classes; None if no metric of the set counts decisions."""


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
        metrics = {entry.name: entry.make(num_classes, validate_args=False, **given) for entry in entries}
        grouped: dict[tuple[Takes, bool], dict[str, Metric]] = {}
        for entry in entries:
            # States of others' metrics have no fingerprint: equal by chance in one batch, they would be merged.
            shares_states = isinstance(metrics[entry.name], SumMetric)
            grouped.setdefault((entry.takes, shares_states), {})[entry.name] = metrics[entry.name]
        self._collections: list[tuple[Takes, MetricCollection]] = [
            (takes, MetricCollection(dict(members), compute_groups=shares).to(device))
            for (takes, shares), members in grouped.items()
        ]

    @property
    def takes(self) -> frozenset[Takes]:
        """The inputs that the metrics take."""
        return frozenset(takes for takes, _ in self._collections)

    def reset(self) -> None:
        """Forget all batches."""
        for _, collection in self._collections:
            collection.reset()

    def update(self, inputs: Mapping[Takes, Tensor], target: Tensor) -> None:
        """Add a batch: the predictions in each form that a metric takes, and the target."""
        for takes, collection in self._collections:
            collection.update(inputs[takes], target)

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics by name, with their states."""
        return {
            name: metric
            for _, collection in self._collections
            for name, metric in collection.items(keep_base=True, copy_state=False)
        }

    def results(self) -> Results:
        """Compute the value of each entry, in their order, and return the counts that a metric of the set holds."""
        metrics = self.metrics()  # once: each access hands the states of a group to all of its members
        confusion = next((metric.confusion for metric in metrics.values() if isinstance(metric, ConfusionMetric)), None)
        values = {entry.name: entry.value(metrics[entry.name]) for entry in self.entries}
        return Results(values, None if confusion is None else confusion.long())
