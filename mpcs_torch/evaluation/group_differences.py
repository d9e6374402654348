"""Differences of models in each group of rows, by one metric."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from mpcs_torch.evaluation.scores import MAX_SHOWN, GroupScores
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.significance import ComparedBy, with_verdicts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE

ABOUT_GROUP_DIFFERENCES = (
    "p-values are corrected for the rows of this table; each interval is for its row alone."
)


class GroupDifference(NamedTuple):
    """The comparison of two models on the rows of a group."""

    column: str
    group: str
    comparison: Comparison


def group_differences(
    groups: Sequence[GroupScores], by: ComparedBy
) -> dict[str, list[GroupDifference]]:
    """Return the differences of each pair of models in each group by a metric, for each column of groups.

    Of more than 40 groups, those with the worst values of the first model are compared. A group without an interval of
    the difference is left out. p-values are corrected for all differences of a column.
    """
    by_column = defaultdict[str, dict[str, GroupScores]](dict)
    for one in groups:
        by_column[one.column][one.model] = one
    differences = dict[str, list[GroupDifference]]()
    for column, models in by_column.items():
        first = next(iter(models.values()))
        names = list[str]()
        rows = list[tuple[str, str, ComparedBy, PairedDifference]]()
        for name in first.worst_first()[:MAX_SHOWN]:
            for a, b in combinations(models, 2):
                units_of_a, units_of_b = [
                    models[each].groups[name].units for each in (a, b)
                ]
                if units_of_a is None or units_of_b is None:
                    continue
                change = units_of_a.difference(units_of_b, by.metric)
                if isinstance(change, PairedDifference):
                    names.append(name)
                    rows.append((a, b, by, change))
        if rows:
            compared = zip(names, with_verdicts(rows, CONFIDENCE), strict=True)
            differences[column] = [
                GroupDifference(column, name, comparison) for name, comparison in compared
            ]
    return differences
