"""`WithInterval`, a Metric that adds an interval to another Metric, for example in a training loop."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import nan
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.influence import Estimate, IndependentUnits, of_sums, total_sums
from mpcs_torch.evaluation.intervals_and_bounds import interval
from mpcs_torch.evaluation.metric_states import (
    BITS,
    PartStates,
    merges,
    state_joins,
    states_by_part,
    takes_weights,
    unmergeable,
)
from mpcs_torch.evaluation.parts import LeftOut, limits_of, of_parts
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.unit_sums import BUDGET, ids_of_names, in_bits
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.arrays import as_tensor, as_tensors
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.groups import row_names
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.functional.measure import fingerprint
from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.measure_metric import MeasureMetric
from mpcs_torch.metrics.metric_entry import identity_of
from mpcs_torch.metrics.named_metrics import WITHOUT_INTERVAL

PARTS = 2**BITS
"""The number of parts of all rows."""
MAX_UPDATES = 16
"""The maximum number of parts that get rows of a batch of independent rows."""


class WithInterval(Metric):
    """Compute the value of a metric and its 95 % interval, by the rules of `mpcs_torch.evaluate`.

    Many metrics of this package are functions of sums over rows, such as `MetaPatternConcernScore`. For these metrics,
    the wrapper keeps the sums of each row or cluster; beyond 16 MiB, it adds the sums of two rows at a time. The states
    of other metrics must be sums, minima, maxima or collected samples, as in most of torchmetrics. The wrapper keeps
    them for up to 128 parts of the rows, and each `update` updates the metric up to 16 times; with clusters, 128 times.

    Args:
        metric: The metric to wrap, which defines the settings. Samples are added to the wrapper, not to this metric.
        prefix: The start of the keys that `compute` returns, such as ``"val_accuracy"``, so that keys in a log differ.
            Default: the class name of the metric in lower case, as in torchmetrics' ``ClasswiseWrapper``.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: If the metric has no interval, or if its states do not merge. `update` raises it if the metric
            refuses the batch, or if only some batches have ``clusters``. `compute` raises it if there was no batch.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Accuracy
        >>> accuracy = WithInterval(Accuracy(num_classes=3))
        >>> accuracy.update(torch.tensor([0, 1, 2, 0]).repeat(20), torch.tensor([0, 1, 2, 2]).repeat(20))
        >>> print({name: f"{value:.3f}" for name, value in accuracy.compute().items()})
        {'accuracy': '0.750', 'accuracy_low': '0.641', 'accuracy_high': '0.840'}
        >>> from torchmetrics.classification import MulticlassCohenKappa
        >>> kappa = WithInterval(MulticlassCohenKappa(num_classes=3), prefix="val_kappa")
        >>> kappa.update(torch.tensor([0, 1, 2, 0]).repeat(200), torch.tensor([0, 1, 2, 2]).repeat(200))
        >>> print(f"{kappa.compute()['val_kappa']:.3f}")
        0.636
    """

    full_state_update = False
    is_differentiable = False

    settings: Tensor
    """(16,), int64: a fingerprint of the settings, so that a MetricCollection shares states only if these are equal."""
    rows: Tensor
    """(P,), int64: the number of rows in each part, for a metric that is not a function of sums."""
    clustered_rows: Tensor
    """Scalar, int64: the number of rows that have a cluster."""
    clusters: list[Tensor]
    """For each batch, (B,), int64: the identifier of the cluster of each bin; none if rows are independent."""
    sums: list[Tensor]
    """For each batch, (B, K), by bin: rows, weights, and the metric's sums."""

    def __init__(self, metric: Metric, *, prefix: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(metric, Metric):
            raise InvalidValueError(
                "instance", "metric", metric, type="torchmetrics.Metric"
            )
        why = WITHOUT_INTERVAL.get(identity_of(type(metric)))
        if why is not None:
            name = type(metric).__name__
            raise InvalidValueError("with_interval", "metric", metric=name, reason=why)
        self.metric: Any = metric
        self._prefix = type(metric).__name__.lower() if prefix is None else prefix
        settings = metric.settings if isinstance(metric, SumMetric) else None
        self.add_state(
            "settings", fingerprint({type(metric).__name__: settings}), dist_reduce_fx="max"
        )
        self.add_state("clustered_rows", torch.tensor(0), dist_reduce_fx="sum")
        if isinstance(metric, MeasureMetric):
            self.add_state("clusters", [], dist_reduce_fx="cat")
            self.add_state("sums", [], dist_reduce_fx="cat")
            return
        self.metric = deepcopy(metric)  # it computes one part of the rows after another
        self.metric.sync_on_compute = False  # the wrapper has synchronised its states
        reason = unmergeable(metric)
        if reason is not None:
            raise InvalidValueError(
                "merges", "metric", reason=f"of {type(metric).__name__}, {reason}"
            )
        self.add_state("rows", torch.zeros(PARTS, dtype=torch.int64), dist_reduce_fx="sum")
        for name, default in metric._defaults.items():
            if isinstance(default, list):
                self.add_state(f"of_parts_{name}", [], dist_reduce_fx="cat")
                self.add_state(f"parts_of_{name}", [], dist_reduce_fx="cat")
            else:
                states = default.unsqueeze(0).repeat(PARTS, *[1] * default.ndim)
                self.add_state(
                    f"of_parts_{name}", states, dist_reduce_fx=metric._reductions[name]
                )

    def update(
        self,
        preds: Tensor,
        target: Tensor | None = None,
        clusters: Sequence[object] | Tensor | None = None,
        **further: Tensor,
    ) -> None:
        """Add a batch.

        Args:
            preds: ``(N, ...)`` predictions, as the metric takes them.
            target: ``(N, ...)`` labels, as the metric takes them; None if it takes no target.
            clusters: ``(N,)`` names of clusters, such as patients: rows of the same cluster are not independent.
            **further: ``(N, ...)`` further arguments of the metric, such as ``sample_weight`` or ``indexes``.
        """
        ids: Tensor | None = None
        if clusters is not None:
            ids = ids_of_names(row_names("clusters", clusters, len(preds)))
        if self._has_rows and bool(self.clustered_rows) != (ids is not None):
            raise InvalidValueError("given_for_every_batch", "clusters")
        add = self._add_sums if isinstance(self.metric, MeasureMetric) else self._add_parts
        add(preds, target, ids, **further)
        if ids is not None:
            self.clustered_rows = self.clustered_rows + len(ids)

    @property
    def _has_rows(self) -> bool:
        if isinstance(self.metric, MeasureMetric):
            return len(self.sums) > 0
        return bool(self.rows.sum() > 0)

    def _add_parts(
        self, preds: Any, target: Any, ids: Tensor | None, **further: Tensor
    ) -> None:
        """Add the states of the rows of each part; ``ids`` are those of clusters, (N,), if there are any."""
        name = type(self.metric).__name__
        inputs = [as_tensor(preds, "preds")]
        if target is not None:
            inputs.append(as_tensor(target, "target"))
        if "sample_weight" in further and not takes_weights(self.metric):
            raise InvalidValueError("metric_of_sums", "sample_weight", metric=name)
        number = len(preds)
        rows_before = int(self.rows.sum())
        # The states of a SumMetric merge; those of another Metric are tested on its first batch.
        is_tested_here = rows_before == 0 and not isinstance(self.metric, SumMetric)
        if is_tested_here and not merges(self.metric, *inputs, **further):
            raise InvalidValueError("merges", "metric", reason=f"those of {name} do not")
        if ids is None:
            place_in_batch = torch.arange(number) % MAX_UPDATES
            parts = (rows_before + place_in_batch) % PARTS
        else:
            parts = in_bits(ids, None, BITS)
        added = dict[str, Any](self.metric_state)
        for part, states_of_part in states_by_part(self.metric, parts, inputs, further):
            self._add_states(added, part, states_of_part)
        added["rows"] = self.rows + parts.bincount(minlength=PARTS).to(self.rows.device)
        for state, value in added.items():
            setattr(self, state, value)

    def _add_states(
        self, added: dict[str, Any], part: int, states_of_part: Mapping[str, Any]
    ) -> None:
        """Add the states of rows of a part to ``added``, the states of this Metric; tensors there do not change."""
        joins = state_joins(self.metric)
        for name, state in states_of_part.items():
            known = added[f"of_parts_{name}"]
            if isinstance(state, list):
                values = [each if each.ndim else each.unsqueeze(0) for each in state]
                codes = [
                    torch.full((len(each),), part, device=each.device) for each in values
                ]
                added[f"of_parts_{name}"] = [*known, *values]
                added[f"parts_of_{name}"] = [*added[f"parts_of_{name}"], *codes]
            else:
                joined = joins[name]([known[part], state])
                of_parts = known.to(joined.dtype, copy=True)
                of_parts[part] = joined
                added[f"of_parts_{name}"] = of_parts

    def _add_sums(
        self,
        preds: Any,
        target: Any,
        ids: Tensor | None,
        sample_weight: Any = None,
    ) -> None:
        """Add the sums of each row; ``ids`` are those of clusters, (N,), if there are any."""
        preds, target, weight = as_tensors(preds, target, sample_weight)
        measure = self.metric.measure
        number = len(target)
        samples = measure.rows(preds.detach(), target, weight)
        if self.metric.validate_args:
            raise_first(samples.find_faults())
        if not number:
            return
        # The samples of soft labels have no hard labels, and say for each class of a row whether it counts.
        is_soft = not hasattr(samples, "labels")
        counted = samples.counted.any(1) if is_soft else samples.labels.counted
        positions = len(counted) // number  # of a row, such as the pixels of an image
        places = torch.arange(len(counted), device=counted.device)
        bins = Bins(places // positions, number)
        sums = measure.sums(samples, bins)
        weights = counted if weight is None else counted * weight.reshape(-1)
        of_rows = bins.sum(torch.stack([counted, weights], 1).to(sums.dtype))
        is_counted = of_rows[:, 1] > 0  # leaves out ignored rows, and rows of weight 0
        if not bool(is_counted.any()):
            return
        if ids is not None:
            self.clusters.append(ids.to(target.device)[is_counted])
        self.sums.append(torch.cat([of_rows, sums], dim=1)[is_counted])
        if sum(part.numel() for part in self.sums) > BUDGET:
            self._join()

    def compute(self) -> dict[str, Tensor]:
        """Return the value and the ends of its interval (NaN without one): float64, in the shape of the metric's value.

        The keys are ``prefix``, ``prefix_low`` and ``prefix_high``.
        """
        if not self._has_rows:
            raise InvalidValueError("not_updated", "WithInterval.compute")
        if not isinstance(self.metric, MeasureMetric):
            return self._named(*self._from_parts())
        self._join_clusters()
        sums = dim_zero_cat(self.sums).cpu().double()
        rows, weights = sums[:, 0], sums[:, 1]
        units = IndependentUnits(
            rows,
            torch.ones_like(rows),
            cluster="clusters" if len(self.clusters) else None,
            weights=None if rows.equal(weights) else weights,
        )
        if units.weights is not None and units.cluster is None:
            units = units._replace(usual_weight=units.usual(weights).item())
        measure = self.metric.measure
        named = measure.named(sums[:, 2:])
        ends = _ends(of_sums(measure, named, units))
        low, high = torch.tensor(ends, dtype=torch.float64)
        return self._named(measure.value(total_sums(named, units)), low, high)

    def _filter_kwargs(self, **kwargs: Any) -> dict[str, Any]:
        """Return the keyword arguments of a `MetricCollection` that `update` takes."""
        taken = {"clusters", *self.metric._filter_kwargs(**kwargs)}
        return {name: value for name, value in kwargs.items() if name in taken}

    def _named(self, value: Tensor, low: Tensor, high: Tensor) -> dict[str, Tensor]:
        return {
            self._prefix: value,
            f"{self._prefix}_low": low,
            f"{self._prefix}_high": high,
        }

    def _from_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        collected: dict[str, Any] = dict(self.metric_state)
        parts: dict[int, dict[str, Any]] = {
            part: {} for part in self.rows.nonzero().squeeze(1).tolist()
        }
        for name, default in self.metric._defaults.items():
            values = collected[f"of_parts_{name}"]
            if isinstance(default, list):
                samples = dim_zero_cat(values)
                codes = dim_zero_cat(collected[f"parts_of_{name}"])
                values = {part: [samples[codes == part]] for part in parts}
            for part, states_of_part in parts.items():
                states_of_part[name] = values[part]
        states = PartStates(self.metric, parts=parts)
        whole = _computed(states.loaded())
        left_out = states.leave_out(_computed, whole)
        self.metric.reset()
        unit = "clusters" if self.clustered_rows else "rows"
        limits = limits_of(self.metric)
        # The value has one or several numbers; each of them has its own interval.
        flat = left_out.mapped(
            lambda values: values.reshape(*values.shape[: values.ndim - whole.ndim], -1)
        )
        ends = list[Interval]()
        for place in range(whole.numel()):
            of_number = LeftOut(*(values[..., place] for values in flat))
            ends.append(_ends(of_parts(of_number, unit, limits)))
        low, high = torch.tensor(ends, dtype=torch.float64).T.reshape(2, *whole.shape)
        return whole, low, high

    def _join_clusters(self) -> None:
        """Join the bins of each cluster, if there are any."""
        if len(self.clusters):
            clusters = dim_zero_cat(self.clusters)
            distinct, places = clusters.unique(return_inverse=True)  # type: ignore[no-untyped-call]
            joined = Bins(places, len(distinct)).sum(dim_zero_cat(self.sums))
            self.clusters, self.sums = [distinct], [joined]

    def _join(self) -> None:
        """Join the bins of each cluster; if rows are independent, join pairs of bins that were added far apart."""
        self._join_clusters()
        if not len(self.clusters):
            sums = dim_zero_cat(self.sums)
            half = (len(sums) + 1) // 2
            places = torch.arange(len(sums), device=sums.device) % half
            self.sums = [Bins(places, half).sum(sums)]


def _ends(estimate: Estimate) -> Interval:
    """Return the ends of the interval of a value, each NaN if it has none."""
    ends = interval(estimate)
    return (nan, nan) if isinstance(ends, Reason) else ends


def _computed(metric: Any) -> Tensor:
    value = metric.compute()
    if not isinstance(value, Tensor):
        raise InvalidValueError("computes_tensor", "metric", value)
    return value.detach().cpu().double()
