"""The rows that measures of ranks keep, and the influences of these rows on the value."""

from collections.abc import Mapping
from math import isfinite, nan

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import (
    RARELY,
    End,
    Influences,
    Units,
    bound,
    difference,
    difference_bound,
    interval,
)
from mpcs_torch.evaluation.reasons import NO_VALUE, NOT_REQUESTED, Reason
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.quality.roc_area import Misranked, RankedRows, RocArea, Shares


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
        measured = self.influences(column, code, clusters=clusters)
        return (nan, NO_VALUE) if measured is None else (measured[0].value, interval(*measured))

    def bound(
        self, column: str, code: int, *, clusters: bool, end: End, minus: "KeptRanks | None" = None
    ) -> float | Reason:
        """Return the bound of a group's value, or of this value minus that of the model ``minus``, for a requirement.

        It allows for a row as badly ranked as any can be.
        """
        measured = self.influences(column, code, clusters=clusters)
        if measured is None:
            return NO_VALUE
        if minus is None:
            return bound(*measured, end)
        other = minus.influences(column, code, clusters=clusters)
        return NO_VALUE if other is None else difference_bound(other[0], *measured, end)

    def influences(self, column: str, code: int, *, clusters: bool) -> tuple[Influences, Units] | None:
        """Return the value of a group's rows with the influence of each unit, and the units; None without a value."""
        rows, ids = self._rows_of(column)[code]
        areas = self.measure.misranked(rows)
        if not areas:
            return None
        units = ids.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        name = "clusters" if clusters else None
        return influences_on_areas(areas, rows.weights, units, name, self.measure.limits)

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
    if one is None or other is None or not isfinite(one[0].value + other[0].value):
        return NO_VALUE
    return difference(one[0], *other)


def influences_on_areas(
    areas: list[Misranked],
    weights: Tensor,
    units: Tensor,
    cluster: str | None,
    limits: tuple[float, float] = (0.0, 1.0),
    word: str = "rows",
) -> tuple[Influences, Units]:
    """Return the influences of units on the mean of some areas under the ROC, and the units.

    A row of the group of an area changes it by its share of wrong comparisons minus the mean share, divided by the
    number of rows of the group; a row of the others likewise. This is the variance of DeLong, DeLong and Clarke-Pearson
    (Biometrics 44, 1988).

    Args:
        areas: The wrong comparisons of each area.
        weights: ``(n,)``: the weights of rows.
        units: ``(n,)``, int64: the unit of each row, from 0 without gaps.
        cluster: The name of the clusters; None if units are independent rows.
        limits: The lowest and the highest possible value.
        word: The word for rows in messages.
    """
    number = int(units.max()) + 1

    def by_unit(numbers: Tensor, places: Tensor | None = None) -> Tensor:
        of_numbers = units if places is None else units[places]
        return torch.zeros(number, dtype=torch.float64).index_add_(0, of_numbers, numbers)

    # A row with shares of annotators is split into several, which are one unit.
    rows = torch.ones(number, dtype=torch.float64) if cluster is None else by_unit(torch.ones_like(weights))
    sizes = by_unit(weights)
    of_all = Units(rows, torch.ones_like(rows), cluster, None if sizes.equal(rows) else sizes, word)
    of_units, added = torch.zeros(2, number, dtype=torch.float64)
    for area in areas:
        for kind in area:
            share = kind.weights / kind.weights.sum() / len(areas)
            of_units += by_unit(share * (kind.mean - kind.shares), kind.places)
            added -= by_unit(share * kind.shares, kind.places)  # twice the value, by the rows of both kinds
    kinds = areas[0] if len(areas) == 1 else [area.of_group for area in areas]
    of_rows = _limits_of_rows(areas)
    found = Influences(
        sum((1 - area.of_group.mean).item() for area in areas) / len(areas),
        of_units,
        added,
        of_rows,
        usual_error=of_rows.flip(1),  # right is the best rank, and wrong the worst
        class_sizes=torch.stack([of_all.usual(by_unit(kind.weights, kind.places)) for kind in kinds]),
        limits=limits,
        further_share=RARELY,
    )
    return found, of_all


def _limits_of_rows(areas: list[Misranked]) -> Tensor:
    """Return the lowest and the highest influence of a row of weight 1 on the mean area, (T, 2), by kind of row.

    With one area, the kinds are the group and the others. With several, a row is of the group in the area of its class,
    and of the others in all other areas.
    """

    def limits(kind: Shares) -> Tensor:
        return (kind.mean - torch.tensor([1.0, 0.0], dtype=torch.float64)) / kind.weights.sum() / len(areas)

    of_groups, of_others = (torch.stack([limits(area[kind]) for area in areas]) for kind in (0, 1))
    if len(areas) == 1:
        return torch.cat([of_groups, of_others])
    return of_groups + of_others.sum(0) - of_others
