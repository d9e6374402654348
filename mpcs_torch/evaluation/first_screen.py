"""The metrics and the tables of classes that are shown unless all are asked for."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mpcs_torch.functional.measure import Direction

if TYPE_CHECKING:  # detectors do not need the register
    from mpcs_torch.metrics.metric_entry import MetricEntry

MAX_CLASS_ROWS = 20
"""The maximum number of rows of tables of classes that texts show unless everything is asked for."""
MAX_ON_SCREEN = 8
"""The maximum number of metrics that tables show by default."""


class DetectorMetric(NamedTuple):
    """A metric of a detector, with the fields of `MetricEntry` that tables read."""

    name: str
    title: str
    """The name of the metric in sentences."""
    direction: Direction = "min"
    in_group_tables: bool = False
    group_rank: int | None = None
    compared_as: str = ""
    screen: int | None = 0
    family: str = "detectors"
    is_count: bool = False
    computes: str = ""
    """The sentence on it in tables. This and the six fields above are as in `MetricEntry`."""
    is_cost: bool = False
    """Whether its value is a cost at a threshold, which is as unsure as the error rates there."""


def on_screen(entries: "Iterable[MetricEntry | DetectorMetric]") -> list[str]:
    """Return the names of the few metrics that tables show by default, in their order."""
    ranked = sorted(
        (entry.screen, place, entry.name)
        for place, entry in enumerate(entries)
        if entry.screen is not None
    )
    return [name for _, _, name in ranked][:MAX_ON_SCREEN]


def by_family(entries: "Iterable[MetricEntry | DetectorMetric]") -> dict[str, list[str]]:
    """Return the names of all metrics by family."""
    families = defaultdict[str, list[str]](list)
    for entry in entries:
        families[entry.family].append(entry.name)
    return dict(families)
