"""`WorstGroup`, a Metric that computes another Metric for each group of rows, and returns the worst value."""

import warnings
from math import nan
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torchmetrics import Metric
from torchmetrics.wrappers.abstract import WrapperMetric

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.checks import widest_float


class WorstGroup(WrapperMetric):
    """Compute a metric for each group of rows, such as a hospital, and return the worst of these values.

    Use it to pick an epoch, or to set the learning rate, by the group for which the model is worst. The worst of many
    groups is worst partly by chance, so its value is usually better on new rows: see `mpcs_torch.evaluate`, whose
    tables of groups have intervals and say which groups may be the worst.

    A group takes part with at least ``min_rows`` rows, ignored ones included, and if its value is not NaN. There is a
    copy of the metric for each group, so memory and time grow with their number. In a `MetricCollection`, ``groups``
    reaches only metrics that take it. If `update` raises an error, some groups may have counted the batch: call
    `reset`. In several processes, a metric of torchmetrics that collects samples needs rows of each group in each
    process; other metrics do not.

    Args:
        metric: The metric to compute for each group; it must say whether higher is better, and compute a scalar.
            Samples are added to the wrapper, not to this metric.
        groups: K, the number of groups.
        min_rows: The minimum number of rows of a group over all batches and processes.

    Raises:
        ValueError: From the constructor if an argument breaks its rule, and from `update` if the metric refuses the
            batch, or if ``groups`` are no integers from 0 to K - 1. `compute` raises it if there was no batch.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Accuracy
        >>> worst = WorstGroup(Accuracy(num_classes=2), groups=3)
        >>> preds, target = torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 1, 1])
        >>> worst.update(preds, target, groups=torch.tensor([0, 0, 2, 2]))
        >>> worst.compute(), worst.per_group()
        (tensor(0.5000, dtype=torch.float64), tensor([1.0000,    nan, 0.5000], dtype=torch.float64))
    """

    def __init__(self, metric: Metric, groups: int, *, min_rows: int = 1) -> None:
        super().__init__()
        is_directed = isinstance(getattr(metric, "higher_is_better", None), bool)
        require(is_directed, "directed_metric", "metric", metric)
        if metric.dist_sync_on_step:
            raise InvalidValueError("no_sync_on_step", "metric")
        are_whole = all(
            isinstance(number, Integral) and number >= 1 for number in (groups, min_rows)
        )
        require(
            are_whole,
            "whole_at_least",
            "groups and min_rows",
            [groups, min_rows],
            minimum=1,
        )
        self.metrics: Any = nn.ModuleList(metric.clone() for _ in range(groups))
        self.counter: Any = _GroupRows(groups)
        self.min_rows = min_rows
        self.reset()

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]  # torchmetrics has an attribute of the class
        """Whether higher values of the metric are better."""
        return bool(self.metrics[0].higher_is_better)

    def update(self, preds: Tensor, target: Tensor, groups: Tensor, **further: Any) -> None:
        """Add a batch.

        Args:
            preds: ``(N, ...)`` predictions, as the metric takes them.
            target: ``(N, ...)`` labels, as the metric takes them.
            groups: ``(N,)`` integers from 0 to K - 1: the group of each row.
            **further: ``(N, ...)`` further arguments of the metric, such as ``sample_weight``.
        """
        self._add("update", preds, target, groups, further)

    def forward(
        self, preds: Tensor, target: Tensor, groups: Tensor, **further: Any
    ) -> Tensor:
        """Add a batch, and return the worst value in the batch; the arguments are those of `update`."""
        values, rows = self._add("forward", preds, target, groups, further)
        large = {group: values[group] for group in values if rows[group] >= self.min_rows}
        worst = self._worst(self._joined(large))
        self._forward_cache: Any = worst  # Lightning reads it
        return worst

    def _add(
        self, step: str, preds: Any, target: Any, groups: Any, further: dict[str, Any]
    ) -> tuple[dict[int, Any], Tensor]:
        """Add a batch by the method ``step`` of the metric of each group.

        Return what this method returned for each group that has rows in the batch, and its number of rows, (K,).
        """
        preds = as_tensor(preds, "preds")
        target = as_tensor(target, "target")
        columns = dict(further)
        for name, values in further.items():
            if values is not None:
                columns[name] = as_tensor(values, name)
        codes = self._codes(as_tensor(groups, "groups"), target)
        self.counter.update(codes)
        results = dict[int, Any]()
        for group in codes.unique().tolist():  # type: ignore[no-untyped-call]
            rows = codes == group
            of_group = {
                name: None if values is None else values[rows]
                for name, values in columns.items()
            }
            add = getattr(self.metrics[group], step)
            results[group] = add(preds[rows], target[rows], **of_group)
        return results, codes.bincount(minlength=len(self.metrics))

    def compute(self) -> Tensor:
        """Return the worst value of the groups that take part: a float64 scalar (float32 on MPS); NaN if none does."""
        return self._worst(self.per_group())

    def per_group(self) -> Tensor:
        """Return the value of each group, (K,), float64 (float32 on MPS): NaN for a group that takes no part."""
        with warnings.catch_warnings():
            # Other processes may have the rows of a group.
            warnings.filterwarnings("ignore", "The ``compute`` method", UserWarning)
            rows = self.counter.compute()
            if not rows.sum() and not self.counter.update_called:
                raise InvalidValueError("not_updated", "WorstGroup.compute")
            large = (rows >= self.min_rows).nonzero().squeeze(1).tolist()
            return self._joined({group: self.metrics[group].compute() for group in large})

    def reset(self) -> None:
        """Reset the states of all groups."""
        for metric in self._members:
            metric.reset()
        super().reset()

    def persistent(self, mode: bool = False) -> None:
        """Set whether `state_dict` has the states of all groups."""
        for metric in self._members:
            metric.persistent(mode)

    @property
    def _members(self) -> tuple[Any, ...]:
        return *self.metrics, self.counter

    def _filter_kwargs(self, **kwargs: Any) -> dict[str, Any]:
        """Return the keyword arguments of a `MetricCollection` that `update` takes."""
        taken: set[str] = {"groups", *self.metrics[0]._filter_kwargs(**kwargs)}
        return {name: value for name, value in kwargs.items() if name in taken}

    def _codes(self, groups: Tensor, target: Tensor) -> Tensor:
        """Return the group of each row, (N,), int64; raise a ValueError unless ``groups`` are groups of the rows."""
        number = len(self.metrics)
        is_whole = groups.shape == target.shape[:1] and not (
            groups.is_floating_point() or groups.is_complex()
        )
        require(is_whole, "group_of_each_row", "groups", groups, last=number - 1)
        is_group = groups.eq(groups.long().remainder(number))
        if not is_group.all():
            row = int(is_group.logical_not().nonzero()[0])
            value = groups[row].item()
            raise InvalidValueError(
                "group_of_each_row", "groups", value, sample=row, last=number - 1
            )
        return groups.to(target.device, torch.int64)

    def _joined(self, values: dict[int, Any]) -> Tensor:
        """Return the value of each group, (K,): NaN for a group without one."""
        numbers = [values.get(group, nan) for group in range(len(self.metrics))]
        for value in numbers:
            is_scalar = isinstance(value, float) or (
                torch.is_tensor(value) and value.numel() == 1
            )
            require(is_scalar, "computes_scalar", "metric", value)
        return torch.tensor(numbers, dtype=widest_float(self.device), device=self.device)

    def _worst(self, values: Tensor) -> Tensor:
        known = values[~values.isnan()]
        if not len(known):
            return values.new_tensor(nan)
        return known.min() if self.higher_is_better else known.max()


class _GroupRows(Metric):
    """The number of rows of each group.

    It is a metric of its own: torchmetrics would share states of equal `WorstGroup` wrappers, but not their metrics.
    """

    full_state_update = False
    rows: Tensor
    """(K,), int64"""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.add_state("rows", torch.zeros(groups, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, codes: Tensor) -> None:
        """Count rows, given their groups ``codes``, (N,)."""
        self.rows = self.rows + codes.bincount(minlength=len(self.rows))

    def compute(self) -> Tensor:
        """Return the number of rows of each group: (K,), int64."""
        return self.rows
