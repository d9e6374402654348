"""The description of a metric that the laws need."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torchmetrics import Metric

from tests.refused import Refused

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Batches:
    """The batches that a metric accepts, and those it refuses."""

    draw: Callable[[int, int], Batch]
    """Draws a random batch of a given size from a seed."""
    bad: Batch
    """Two samples, of which the second breaks a rule."""
    refusal: Refused
    """Of `bad`."""
    ignoring: dict[str, Any]
    """Settings with which every sample of `ignored` is left out."""
    ignored: tuple[Tensor | None, ...]


@dataclass(frozen=True, eq=False)  # a case equals itself alone
class MetricCase:
    """The description of one metric."""

    make: Callable[..., Metric]
    """Makes the metric; takes more settings by keyword."""
    higher_is_better: bool | None
    make_other: Callable[[], Metric]
    """Makes a metric with other settings, whose value is equal on `agreeing_batch` and different on other batches."""
    agreeing_batch: Batch
    oracle: Callable[[Batch], dict[str, float]]
    """Computes the values of a batch in plain Python, by name; the name of a single value is empty."""
    batches: Batches
    given_core: Callable[[Tensor, Tensor], Any] | None = None
    """The computation of `update` of a Metric that is no measure."""
    make_stranger: Callable[[], Metric] | None = None
    """Makes a metric whose states must not be mistaken for those of this one. Default: `make_other`."""

    @property
    def core(self) -> Callable[[Tensor, Tensor], Any]:
        """The computation of `update`, as a function to compile."""
        if self.given_core is not None:
            return self.given_core
        measure = self.make().measure
        return lambda preds, target: measure.sums(measure.rows(preds, target))
