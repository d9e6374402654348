"""Decide which metrics of the same samples share their sums or states, so that these are computed once."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from mpcs_torch.functional.measure import Measure
from mpcs_torch.metrics.metric_entry import MetricEntry, Takes


class SharedSums(NamedTuple):
    """Measures with equal sums, or names of one measure of ranks or of one Metric."""

    takes: Takes
    entries: list[MetricEntry]
    members: dict[str, Any]
    """The measure, the measure of ranks or the Metric, by the name of its entry."""

    @property
    def first(self) -> Any:
        """The member that computes the sums or states of all."""
        return next(iter(self.members.values()))

    def values(self, sums: Any) -> dict[str, Any]:
        """Return the value of each measure by name, given named ``sums``; names of one measure share its value."""
        by_measure = {id(measure): measure.value(sums) for measure in self.members.values()}
        return {name: by_measure[id(measure)] for name, measure in self.members.items()}


def shared_sums(
    entries: Iterable[MetricEntry], num_classes: int, **settings: Any
) -> list[SharedSums]:
    """Make the measures and Metrics of ``entries``, together where they share sums; ``settings`` are for all with them.

    Metrics do not validate the values of batches, because these were validated before.
    """
    groups = dict[Hashable, SharedSums]()
    made = dict[Hashable, Any]()
    for entry in entries:
        # Entries with equal settings are names of one metric; a Metric that the user made is shared with none.
        is_users = entry.made is not None
        definition: Hashable = id(entry) if is_users else (entry.of, repr(entry.settings))
        of_metric = entry.takes, definition
        if of_metric not in made:
            made[of_metric] = entry.make(num_classes, validate_args=False, **settings)
        member = made[of_metric]
        # Other measures with equal sums share these.
        of_sums: Hashable = of_metric
        if isinstance(member, Measure):
            of_sums = entry.takes, tuple(member.fingerprint().tolist())
        group = groups.setdefault(of_sums, SharedSums(entry.takes, [], {}))
        group.entries.append(entry)
        group.members[entry.name] = member
    return [*groups.values()]
