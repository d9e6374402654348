"""The rows that measures of ranks keep, and the influences of these rows on the value."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import (
    RARELY,
    Estimate,
    IndependentUnits,
    Influences,
    Unknown,
)
from mpcs_torch.evaluation.reasons import NO_VALUE
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.unit_sums import places_by_code
from mpcs_torch.functional.quality.roc_area import RankedGroup, RankedRows, RocArea, Shares

MIN_KNOWN = 30
"""The number of units of a class from which these show how much two models differ in how they rank the class."""


class RankedUnits(NamedTuple):
    """The rows of a group that a measure of ranks keeps, and their units."""

    measure: RocArea
    kept: Rows
    """The rows as `KeptRanks` keeps them."""
    cluster: str | None
    """The column of clusters; None if rows are independent."""

    @property
    def rows(self) -> RankedRows:
        """The columns of the rows that the measure needs."""
        assert self.kept.weights is not None
        return RankedRows(self.kept.probs, self.kept.target, self.kept.weights)

    def value(self) -> float:
        """Return the value."""
        return self.measure.value(self.rows).item()

    def estimate(self) -> Estimate:
        """Return the value with the influence of each unit."""
        rows = self.rows
        areas = self.measure.areas(rows)
        if not areas:
            return Unknown(nan, NO_VALUE)
        units = self.kept.ids.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        return influences_on_areas(
            areas, rows.weights, units, self.cluster, self.measure.limits
        )


class KeptRanks:
    """The rows that a measure of ranks keeps: its scores as ``probs``, and its labels as ``target``."""

    def __init__(self, measure: RocArea) -> None:
        self.measure = measure
        self._parts = list[Rows]()

    def add(self, rows: Rows, ranked: RankedRows) -> None:
        """Add rows, of which the measure keeps ``ranked``."""
        scores, labels, weights = ranked
        kept = Rows(scores, labels, rows.ids, rows.groups, weights)
        self._parts.append(kept)

    def merge(self, other: "KeptRanks", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add the rows of ``other``, whose codes of groups ``codes`` translates; add ``first`` to its identifiers."""
        for rows in other._parts:
            groups = {column: codes[column][of] for column, of in rows.groups.items()}
            self._parts.append(rows._replace(ids=rows.ids + first, groups=groups))

    def by_group(self, column: str, cluster: str | None) -> dict[int, RankedUnits]:
        """Return the rows of each group of a column by its code; without a column, all have code 0."""
        rows = Rows.joined(self._parts)
        if not column:
            return {0: RankedUnits(self.measure, rows, cluster)}
        return {
            code: RankedUnits(self.measure, rows.at(places), cluster)
            for code, places in places_by_code(rows.groups[column]).items()
        }


def influences_on_areas(
    areas: list[RankedGroup],
    weights: Tensor,
    units: Tensor,
    cluster: str | None,
    limits: tuple[float, float] = (0.0, 1.0),
    word: str = "rows",
) -> Influences:
    """Return the mean of some areas under the ROC, with the influences of units on it.

    A row of the group of an area changes it by its share of wrong comparisons minus the mean share, divided by the
    number of rows of the group; a row of the others likewise. This is the variance of DeLong, DeLong and Clarke-Pearson
    (Biometrics 44, 1988).

    Args:
        areas: What is ranked for each area.
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

    rows = torch.ones(number, dtype=torch.float64)
    # Without clusters, a unit is one row, even if the shares of annotators split it into several.
    if cluster is not None:
        rows = by_unit(torch.ones_like(weights))
    sizes = by_unit(weights)
    of_all = IndependentUnits(
        rows,
        torch.ones_like(rows),
        cluster,
        weights=None if sizes.equal(rows) else sizes,
        word=word,
    )
    of_units = torch.zeros(number, dtype=torch.float64)
    values = list[float]()
    sizes_of_kinds = list[Tensor]()
    are_few = list[bool]()
    limits_of_kinds = list[tuple[Tensor, Tensor]]()
    for area in areas:
        compared = area.misranked()
        values.append((1 - compared.of_group.mean).item())
        for kind in compared:
            share = kind.weights / kind.weights.sum() / len(areas)
            of_units += by_unit(share * (kind.mean - kind.shares), kind.places)
        kinds = compared if len(areas) == 1 else compared[:1]
        by_kind = [by_unit(kind.weights, kind.places) for kind in kinds]
        sizes_of_kinds += [of_all.usual(of_kind) for of_kind in by_kind]
        are_few += [int(of_kind.count_nonzero()) < MIN_KNOWN for of_kind in by_kind]
        of_group, of_others = [_limits(kind) / len(areas) for kind in compared]
        limits_of_kinds.append((of_group, of_others))
    of_rows = _limits_of_rows(limits_of_kinds)
    # Right is the best rank, and wrong the worst. Only of a few units may all agree by chance.
    usual_error = of_rows.flip(1) * torch.tensor(are_few).unsqueeze(1)
    return Influences(
        sum(values) / len(areas),
        of_units,
        of_all,
        of_rows=of_rows,
        usual_error=usual_error,
        class_sizes=torch.stack(sizes_of_kinds),
        limits=limits,
        further_share=RARELY,
    )


def _limits(kind: Shares) -> Tensor:
    """Return the lowest and the highest influence of a row of weight 1 on one area, (2,)."""
    # The highest and the lowest possible share of wrong comparisons of a row.
    all_or_nothing = torch.tensor([1.0, 0.0], dtype=torch.float64)
    return (kind.mean - all_or_nothing) / kind.weights.sum()


def _limits_of_rows(limits: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the lowest and the highest influence of a row of weight 1 on the mean area, (T, 2), by kind of row.

    With one area, the kinds are the group and the others. With several, a row is of the group in the area of its class,
    and of the others in all other areas. ``limits`` are those of a row of the group, and of the others, by area.
    """
    of_groups = torch.stack([of_group for of_group, _ in limits])
    of_others = torch.stack([of_others for _, of_others in limits])
    if len(limits) == 1:
        return torch.cat([of_groups, of_others])
    return of_groups + of_others.sum(0) - of_others
