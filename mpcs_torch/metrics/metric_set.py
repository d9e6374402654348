"""Several metrics over the same samples, each fed what it takes."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.by_name import MetricEntry, Takes
from mpcs_torch.metrics.quality.confusion import ConfusionMetric


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

    def metric(self, name: str) -> Metric:
        """Return the metric of an entry, with its states."""
        return self._metrics()[name]

    def confusion(self) -> Tensor | None:
        """Return the counts of true and predicted classes, int64 (C, C), if a metric of the set holds them."""
        held = (metric.confusion for metric in self._metrics().values() if isinstance(metric, ConfusionMetric))
        confusion = next(held, None)
        return None if confusion is None else confusion.long()

    def values(self) -> dict[str, float]:
        """Compute the value of each entry, in their order."""
        metrics = self._metrics()
        return {entry.name: entry.value(metrics[entry.name]) for entry in self.entries}

    def _metrics(self) -> dict[str, Metric]:
        return {
            name: metric
            for _, collection in self._collections
            for name, metric in collection.items(keep_base=True, copy_state=False)
        }
