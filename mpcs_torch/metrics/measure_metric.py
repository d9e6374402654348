"""MeasureMetric, the torchmetrics form of a measure, and DefinedMetric, the base of those of all kinds of measures."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.measure import Measure
from mpcs_torch.metrics.base import SumMetric


class DefinedMetric(SumMetric):
    """A Metric that a measure defines. The settings of the measure are attributes."""

    __jit_ignored_attributes__: ClassVar[list[str]] = [
        *SumMetric.__jit_ignored_attributes__,
        "measure",
    ]
    of: ClassVar[Any]
    """The class of the measure."""

    def __init_subclass__(cls) -> None:
        """Take from the measure which direction is better, and the limits of figures."""
        super().__init_subclass__()
        if "of" in vars(cls):
            for name, value in _of_figures(cls.of).items():
                setattr(cls, name, value)

    def __init__(
        self,
        measure: Any,
        validate_args: bool,
        kwargs: Mapping[str, Any],
        state_settings: Mapping[str, Any],
    ) -> None:
        """Initialize from a measure, the arguments of `torchmetrics.Metric`, ``kwargs``, and what states depend on."""
        arguments = {"measure": measure, "validate_args": validate_args, "kwargs": kwargs}
        super().__init__(
            arguments, value_rules=measure.value_rules, state_settings=state_settings
        )
        if not hasattr(self, "of"):
            # In __dict__, because torchmetrics forbids to set these attributes of an instance.
            self.__dict__.update(_of_figures(measure))

    def __getattr__(self, name: str) -> Any:
        """Return a setting of the measure."""
        measure = self.__dict__.get("measure")
        if measure is not None and name in measure.__dataclass_fields__:
            return getattr(measure, name)
        return super().__getattr__(name)


class MeasureMetric(DefinedMetric):
    """A Metric whose states are the sums of a `Measure`.

    In a `MetricCollection`, metrics with equal sums share them.
    """

    measure: Measure
    sums: Tensor
    """(K,): the sums of all samples so far."""

    def __init__(
        self, measure: Measure, validate_args: bool, kwargs: Mapping[str, Any]
    ) -> None:
        """Initialize from a measure and the arguments of `torchmetrics.Metric`, ``kwargs``."""
        super().__init__(measure, validate_args, kwargs, measure.sums_key())
        self.add_sum("sums", shape=(measure.width,))

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        self.add_rows(preds, target, sample_weight)

    def add_rows(self, preds: Tensor, *others: Tensor | None) -> None:
        """Add a batch, given the arguments of `Measure.rows`."""
        rows = self.measure.rows(detached(preds), *others)
        self.admit(rows.find_faults)
        self.add(sums=self.measure.sums(rows))

    def compute(self) -> Any:
        """Return the value of all samples: a float64 scalar."""
        self.check_computable()
        return self.measure.value(self.named_sums())

    def named_sums(self) -> Any:
        """Return the sums of all samples so far, by name."""
        return self.measure.named(self.sums)


def _of_figures(measure: Any) -> dict[str, Any]:
    low, high = measure.limits
    is_higher = None if measure.direction is None else measure.direction == "max"
    return {
        "higher_is_better": is_higher,
        "plot_lower_bound": low,
        "plot_upper_bound": high,
    }
