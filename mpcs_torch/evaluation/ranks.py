"""Values, intervals and differences of measures of ranks, from the rows that they keep."""

from collections.abc import Mapping
from math import hypot, isfinite, nan, sqrt

import torch
from torch import Tensor

from mpcs_torch.evaluation.influences import Influences, area_interval, difference, roc_area
from mpcs_torch.evaluation.intervals import MIN_UNITS, NO_VALUE, NOT_REQUESTED, End, Reason, student_difference
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.quality.roc_area import Misranked, RankedRows, RocArea

FEW_DECIDE = "too few rows determine it, so rows that would change it much may be missing here"
MIN_EFFECTIVE = 40
"""The minimum effective number of rows for the interval of a mean over classes."""


class KeptRanks:
    """The rows that a measure of ranks keeps, with their identifiers and groups."""

    def __init__(self, measure: RocArea) -> None:
        self.measure = measure
        self._parts = list[tuple[RankedRows, Tensor, dict[str, Tensor]]]()
        self._of_groups = dict[str, dict[int, tuple[RankedRows, Tensor]]]()
        """The rows and identifiers of each group, by column, once they are asked for."""

    def add(self, rows: RankedRows, ids: Tensor, groups: Mapping[str, Tensor]) -> None:
        """Add rows with identifiers of rows or clusters, (n,), and codes of groups by column, (n,) each."""
        self._parts.append((rows, ids, dict(groups)))
        self._of_groups.clear()

    def so_far(self) -> "KeptRanks":
        """Return an object with the same rows, which does not change when further rows are added to this one."""
        same = KeptRanks(self.measure)
        same._parts, same._of_groups = list(self._parts), dict(self._of_groups)
        return same

    def merge(self, other: "KeptRanks", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add the rows of ``other``, whose codes of groups ``codes`` translates; add ``first`` to its identifiers."""
        for rows, ids, groups in other._parts:
            self.add(rows, ids + first, {column: codes[column][each] for column, each in groups.items()})

    def measured(self, column: str, code: int, *, clusters: bool | None) -> tuple[float, Interval | Reason]:
        """Return the value of a group's rows (of all rows if ``column`` is empty), and its interval or why it has none.

        ``clusters`` is None if no interval is wanted.
        """
        if clusters is None:
            rows, _ = self._rows_of(column)[code]
            return self.measure.value(rows).item(), NOT_REQUESTED
        found = self.influences(column, code, clusters=clusters)
        if found is None or not isfinite(found.value):
            return nan, NO_VALUE
        if found.possible is not None:
            return found.value, area_interval(found)
        return found.value, found.jackknife("logit") if found.effective() >= MIN_EFFECTIVE else FEW_DECIDE

    def bound(
        self, column: str, code: int, *, clusters: bool, end: End, minus: "KeptRanks | None" = None
    ) -> float | Reason:
        """Return the bound of a group's value, or of this value minus that of the model ``minus``, for a requirement.

        It allows for a row as badly ranked as any can be.
        """
        found = self._limited(column, code, clusters=clusters)
        other = None if minus is None else minus._limited(column, code, clusters=clusters)
        if found is None or (minus is not None and other is None):
            return NO_VALUE
        return (found if other is None else found.minus(other)).bounds(end.confidence)[end.is_upper]

    def _limited(self, column: str, code: int, *, clusters: bool) -> Influences | None:
        """Return the influences of rows with their limits, which are known for a mean over classes, too."""
        found = self.influences(column, code, clusters=clusters)
        if found is None or not isfinite(found.value) or found.possible is not None:
            return found if found is not None and isfinite(found.value) else None
        rows, _ = self._rows_of(column)[code]
        return found._replace(possible=[_limits_of_rows(self.measure.misranked(rows))])

    def influences(self, column: str, code: int, *, clusters: bool) -> Influences | None:
        """Return the value of a group's rows with the influence of each; None if there is no value."""
        rows, ids = self._rows_of(column)[code]
        areas = self.measure.misranked(rows)
        if not areas:
            return None
        units = ids.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        are_rows = not clusters and int(units.max()) + 1 == len(units)  # a row with shares is split into several
        weights = None if bool((rows.weights == 1).all()) else rows.weights
        return _of_areas(areas, weights, None if are_rows else units)

    def _rows_of(self, column: str) -> dict[int, tuple[RankedRows, Tensor]]:
        """Return the rows and identifiers of each group of a column, by its code; without a column, all have code 0."""
        if column not in self._of_groups:
            rows = RankedRows.joined([rows for rows, _, _ in self._parts])
            ids = torch.cat([ids for _, ids, _ in self._parts])
            codes = torch.cat([groups[column] for _, _, groups in self._parts]) if column else torch.zeros_like(ids)
            order = codes.argsort(stable=True)
            distinct, counts = codes[order].unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
            places = zip(distinct.tolist(), order.split_with_sizes(counts.tolist()), strict=True)
            self._of_groups[column] = {code: (rows.at(at), ids[at]) for code, at in places}
        return self._of_groups[column]


def rank_difference(first: KeptRanks, second: KeptRanks, *, clusters: bool) -> PairedDifference | Reason:
    """Return the second model's value minus the first's, for all rows, or the reason why there is no interval."""
    one, other = (kept.influences("", 0, clusters=clusters) for kept in (first, second))
    if one is None or other is None:
        return NO_VALUE
    change = other.minus(one)
    if change.effective() < MIN_UNITS:
        return difference(one, other)
    areas = (kept.measure.misranked(kept._rows_of("")[0][0]) for kept in (first, second))
    spread = hypot(change.spread(), sqrt(_unseen(*areas)))
    return student_difference(one.value, other.value, spread, change.freedom())


def _unseen(first: list[Misranked], second: list[Misranked]) -> float:
    """Return the variance of the difference of two mean areas by rows that may be missing by chance.

    Of each kind of row, there are two, with half of the weight of a row each: one that only the first model ranks below
    (or above) all others, and one that only the second model does.
    """
    variance = 0.0
    for areas in zip(first, second, strict=True):
        for one, other in zip(*areas, strict=True):
            change = (other.mean - one.mean).item()
            variance += ((1 - change) ** 2 + (1 + change) ** 2) / 4 / len(one.places) ** 2
    return variance / len(first) ** 2


def _limits_of_rows(areas: list[Misranked]) -> tuple[float, float]:
    """Return the least and the largest influence that a row can have on the mean of some areas, as in `_of_areas`.

    A row is ranked against the rest in the area of its class, and against the group in the other areas.
    """
    means = [area.of_group.mean.item() for area in areas]
    own = [(area.of_group.weights.max() / area.of_group.weights.sum()).item() for area in areas]
    rest = [(area.of_others.weights.max() / area.of_others.weights.sum()).item() for area in areas]
    limits = []
    for place in range(len(areas)):
        used = [own[at] if at == place else rest[at] for at in range(len(areas))]
        limits.append([sum(share * (mean - end) for mean, share in zip(means, used, strict=True)) for end in (1, 0)])
    number = sum(len(kind.places) for kind in areas[0])
    least, most = min(low for low, _ in limits), max(high for _, high in limits)
    return number * least / len(areas), number * most / len(areas)


def _of_areas(areas: list[Misranked], weights: Tensor | None, units: Tensor | None) -> Influences:
    """Return the mean of some areas with the influence of each row; with one area, by kind of row."""
    if len(areas) == 1:
        kinds = [*areas[0]]
        of_kinds = None if weights is None else [kind.weights for kind in kinds]
        clusters = None if units is None else [units[kind.places] for kind in kinds]
        return roc_area([kind.shares for kind in kinds], of_kinds, clusters)
    number = sum(len(kind.places) for kind in areas[0])
    influence = torch.zeros(number, dtype=torch.float64)
    for area in areas:
        for kind in area:
            share = kind.weights / kind.weights.sum()
            influence.index_add_(0, kind.places, share * (kind.mean - kind.shares))
    value = sum((1 - area.of_group.mean).item() for area in areas) / len(areas)
    # The mean influence is 0, to which the value is added by `Influences` itself.
    return Influences(value, [influence * number / len(areas)], clusters=None if units is None else [units])
