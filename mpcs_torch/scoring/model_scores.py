"""All that is measured of some classifiers, as tables show it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from mpcs_torch.functional import Comparison
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.metric_sections import sections_of
from mpcs_torch.scoring.own_intervals import reasons_without_interval
from mpcs_torch.scoring.row_risks import RowRisks
from mpcs_torch.scoring.scores import Scores
from mpcs_torch.tables import Table

INDEPENDENT = (
    "95 % intervals assume independent rows: Clopper-Pearson for rates of errors and of classes, Student's t for means "
    "over rows such as mpcs, bootstrap for others. With --cluster COLUMN, rows that share a value (a patient) are "
    "drawn together."
)
OF_GROUPS = (
    "Intervals of groups are each of one group alone. The worst of many groups is likely to look worse here than on "
    "new rows, because it was selected by its value: it has no interval, nor have the mean and the spread of groups."
)


class ModelScores(NamedTuple):
    """All that is measured of some classifiers."""

    scores: dict[str, Scores]
    """By model."""
    comparisons: Sequence[Comparison] = ()
    groups: Sequence[GroupScores] = ()
    """One for each column and model."""
    notes: Sequence[str] = ()
    """Sentences about intervals and comparisons for the reader."""
    risks: Mapping[str, RowRisks] = MappingProxyType({})
    """The risks that figures of certainty need, by model; empty unless they were kept."""

    @property
    def first(self) -> Scores:
        """The scores of the first model."""
        return next(iter(self.scores.values()))

    def noted(self) -> "ModelScores":
        """Add to the notes how the files were read, and why metrics have no value."""
        told = dict[str, list[str]]()
        for name, scores in self.scores.items():
            for remark in scores.remarks():
                told.setdefault(remark, []).append(name)
            for reason, bare in reasons_without_interval(scores).items():
                told.setdefault(f"No interval for {', '.join(bare)}: {reason}.", []).append(name)
        several = len(self.scores) > 1
        added = [f"{', '.join(names)}: {remark}" if several else remark for remark, names in told.items()]
        of_groups = [OF_GROUPS] if any(groups.has_intervals for groups in self.groups) else []
        return self._replace(notes=[*added, *self.notes, *of_groups])

    def sections(self) -> list[tuple[str, Table]]:
        """Return the metrics in tables, the main ones first, each with a sentence about it, which may be empty."""
        names = dict.fromkeys(name for scores in self.scores.values() for name in scores.values)
        found = sections_of(names, has_concern=self.first.has_concern)
        return [(section.about, self.table(section.names)) for section in found]

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric, or for some, and for several models a column for each, with its intervals."""
        if len(self.scores) == 1:
            return self.first.table(names)
        if names is None:
            names = list(dict.fromkeys(name for scores in self.scores.values() for name in scores.values))
        rows = [[name, *(_cell(scores, name) for scores in self.scores.values())] for name in names]
        return Table(["metric", *self.scores], rows)


def _cell(scores: Scores, name: str) -> str:
    if name not in scores.values:
        return ""
    interval = scores.interval(name)
    return f"{scores.values[name]:.5g}" + (f" ({interval})" if interval else "")
