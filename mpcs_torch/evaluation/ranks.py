"""Values, intervals and differences of measures of ranks, from the rows that they keep."""

from collections.abc import Mapping
from math import isfinite, nan

import torch
from torch import Tensor

from mpcs_torch.evaluation.influences import Influences, area_interval, difference, roc_area
from mpcs_torch.evaluation.intervals import NO_VALUE, NOT_REQUESTED, Reason
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
    found = [kept.influences("", 0, clusters=clusters) for kept in (first, second)]
    if found[0] is None or found[1] is None:
        return NO_VALUE
    return difference(found[0], found[1])


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
