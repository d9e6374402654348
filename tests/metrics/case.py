"""What the laws need to know of a metric."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mpcs_torch.metrics.base import SumMetric

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Fed:
    """What batches a metric takes, and which it refuses."""

    draw: Callable[[int, int], Batch]
    """A random batch of a size, from a seed."""
    bad: Batch
    """Two samples, the second of which breaks the rule of `rule`."""
    rule: str
    quoted: str
    """How the message quotes it."""
    ignoring: dict[str, Any]
    """Settings under which `ignored` leaves everything out."""
    ignored: tuple[Tensor | None, ...]


@dataclass(frozen=True)
class MetricCase:
    """What the laws need to know of a metric."""

    make: Callable[..., SumMetric]
    """With more settings by keyword."""
    higher_is_better: bool | None
    make_other: Callable[[], SumMetric]
    """Other settings, whose value is the same on `agreeing_batch` and another one on other batches."""
    agreeing_batch: Batch
    oracle: Callable[[Batch], dict[str, float]]
    """The values of a batch from plain Python; a single value is named after nothing."""
    core: Callable[[Tensor, Tensor], Any]
    """What `update` computes, as a function to compile."""
    fed: Fed
    make_stranger: Callable[[], SumMetric] | None = None
    """One whose states must not be taken for this one's: `make_other`, unless its states mean the same."""
