"""WithInterval: a Metric that gives another one an interval, in a training loop too."""

from collections.abc import Sequence
from math import nan
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.evaluation.bins import BUDGET, ids_of_names
from mpcs_torch.evaluation.intervals import Units, interval_of, whole_of
from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.groups import row_names
from mpcs_torch.functional.inputs.labels import Bins, in_bins
from mpcs_torch.metrics.additive import AdditiveMetric

NO_CLUSTER = -1


class WithInterval(Metric):
    """Compute the value of a metric and its 95 % interval, by the rules of `mpcs_torch.evaluate`.

    It holds the sums of the metric for each row while that takes less than 16 MiB, then of rows together; with
    clusters, for each of them.

    Args:
        metric: A metric of this package that is one value of sums, such as `MetaPatternConcernScore`. Its settings
            count; samples are added to the wrapper alone.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: If the metric is not computed from sums; as the metric's `update` does; from `update`, if
            ``clusters`` are given for some batches alone; and from `compute`, if no batch was seen.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Accuracy
        >>> accuracy = WithInterval(Accuracy(num_classes=3))
        >>> accuracy.update(torch.tensor([0, 1, 2, 0]).repeat(20), torch.tensor([0, 1, 2, 2]).repeat(20))
        >>> print({name: f"{value:.3f}" for name, value in accuracy.compute().items()})
        {'value': '0.750', 'low': '0.641', 'high': '0.840'}
    """

    full_state_update = False
    is_differentiable = False

    clusters: list[Tensor]
    """(B,), int64, for each part: identifiers of clusters, -1 where rows are independent."""
    sums: list[Tensor]
    """(B, K) for each part: the numbers of rows and of wrong decisions (NaN for soft labels), and the metric's sums."""

    def __init__(self, metric: AdditiveMetric, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(metric, AdditiveMetric):
            raise ValueError(f"metric must be computed from sums, but got {type(metric).__name__}.")
        self.metric = metric
        self.add_state("clusters", [], dist_reduce_fx="cat")
        self.add_state("sums", [], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor, clusters: Sequence[object] | Tensor | None = None) -> None:
        """Add a batch.

        Args:
            preds: ``(N, ...)``, as the metric takes them.
            target: ``(N, ...)``, as the metric takes it.
            clusters: ``(N,)`` names of what rows share, such as a patient: these rows are not independent.
        """
        preds, target, _ = as_tensors(preds, target)
        samples, number = self.metric.samples_of(preds, target), len(target)
        if self.metric.validate_args:
            raise_first(samples.find_faults())
        ids = torch.full((number,), NO_CLUSTER)
        if clusters is not None:
            ids = ids_of_names(row_names("clusters", clusters, number))
        if self.clusters and bool((self.clusters[0][:1] == NO_CLUSTER).all()) != (clusters is None):
            raise ValueError("clusters must be given for every batch or for none.")
        if not number:
            return
        counted = samples.labels.counted if hasattr(samples, "labels") else samples.counted.any(1)
        bins = Bins(torch.arange(len(counted), device=counted.device) // (len(counted) // number), number)
        sums = self.metric.sums_of(in_bins(samples, bins))
        of_rows = torch.stack([counted, counted & _wrong(preds, target)], 1).to(sums[0].dtype)
        if target.is_floating_point():  # soft labels have no wrong decisions
            of_rows[:, 1] = nan
        rows = torch.cat([bins.sum(of_rows), self.metric.packed(sums)], dim=1)
        is_counted = rows[:, 0] > 0  # ignored rows say nothing
        if not bool(is_counted.any()):
            return
        self.clusters.append(ids.to(target.device)[is_counted])
        self.sums.append(rows[is_counted])
        if sum(part.numel() for part in self.sums) > BUDGET:
            self._join()

    def compute(self) -> dict[str, Tensor]:
        """Return ``value``, ``low`` and ``high``: float64 scalars, the ends NaN where there is no interval."""
        if not len(self.sums):
            raise ValueError("WithInterval.compute needs at least one batch: call update first.")
        clusters, numbers = self._joined()
        numbers, is_clustered = numbers.cpu().double(), bool((clusters != NO_CLUSTER).any())
        ones = torch.ones(len(numbers), dtype=torch.float64)
        units = Units(numbers[:, 0], numbers[:, 1], ones, "clusters" if is_clustered else None)
        bins = self.metric.unpacked(numbers[:, 2:])
        interval = interval_of(self.metric, bins, units)
        ends = (nan, nan) if isinstance(interval, str) else interval
        low, high = (torch.tensor(end, dtype=torch.float64) for end in ends)
        return {"value": self.metric.value_of(whole_of(bins, units)), "low": low, "high": high}

    def _joined(self) -> tuple[Tensor, Tensor]:
        """Return the clusters of all bins, (B,), -1 for independent rows, and their sums, (B, K)."""
        clusters, sums = (torch.cat(part) if isinstance(part, list) else part for part in (self.clusters, self.sums))
        if bool((clusters == NO_CLUSTER).all()):
            return clusters, sums
        distinct, places = clusters.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        return distinct, Bins(places, len(distinct)).sum(sums)

    def _join(self) -> None:
        """Hold fewer bins: one for each cluster, or one for two rows that are far from each other."""
        clusters, sums = self._joined()
        if bool((clusters == NO_CLUSTER).all()):
            half = (len(sums) + 1) // 2
            sums = Bins(torch.arange(len(sums), device=sums.device) % half, half).sum(sums)
            clusters = clusters[:half]
        self.clusters, self.sums = [clusters], [sums]


def _wrong(preds: Tensor, target: Tensor) -> Tensor:
    """Return which decisions are wrong, one for each flat sample."""
    if target.is_floating_point():
        return target.new_zeros(target.numel() if target.ndim < 2 else target[:, 0].numel(), dtype=torch.bool)
    decided = preds.argmax(1) if preds.is_floating_point() and preds.ndim > target.ndim else preds
    return ((decided > 0.5) if decided.is_floating_point() else decided).reshape(-1) != target.reshape(-1)
