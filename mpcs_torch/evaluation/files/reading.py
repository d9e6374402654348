"""Options for reading a file: one set, the same in all commands and functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Missing = Literal["error", "drop"]


class ReadOptions(NamedTuple):
    """Say how to read files of predictions or of scores, where their content does not."""

    label_column: str | None = None
    """The column of labels."""
    score_columns: Sequence[str] = ()
    """The columns of scores, in the order of the classes; ``*`` stands for any text. Of detectors, one column."""
    decision_column: str | None = None
    """The column of predicted labels, which are then measured instead of scores."""
    id_column: str | None = None
    """The column that names rows: by it, the rows of several files and of labels are matched."""
    labels: Path | None = None
    """A file of the labels, matched by ``id_column``, else by the order of rows. Of detectors, a list of trials."""
    classes: Sequence[str] = ()
    """The names of the classes, in their order; where they are known, as from a concern, what the file calls them."""
    by: Sequence[str] = ()
    """Columns whose groups are measured too; a missing value is the group "(none)"."""
    cluster: str | None = None
    """A column whose values say which rows are not independent."""
    weight: str | None = None
    """A column of numbers from 0 on: how much each row counts."""
    cost_columns: Sequence[str] = ()
    """Columns of what deciding for each class costs, in the order of the classes; or one column of lists."""
    missing: Missing = "error"
    """Whether a row without a label or a score is an error, or left out and counted."""
    from_logits: bool = False
    """Whether scores are logits, not probabilities."""
    target_label: str | None = None
    """Of detectors: the label of targets; all others are non-targets."""
    lower_is_target: bool = False
    """Of detectors: whether low scores are those of targets, as distances are."""

    @property
    def columns(self) -> list[str]:
        """The columns beside scores and labels that are asked for."""
        names = [*self.by, self.cluster, self.id_column]
        return list(dict.fromkeys(name for name in names if name is not None))

    def in_words(self) -> list[str]:
        """Return the options that say how to read a file, as a command line has them."""
        given = {"--label-column": self.label_column, "--decision-column": self.decision_column}
        given |= {"--score-columns": ",".join(self.score_columns), "--classes": ",".join(self.classes)}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return [*words, *(["--missing", "drop"] if self.missing == "drop" else []), *(["--logits"] * self.from_logits)]


NO_GROUP = "(none)"
"""The group of rows without one."""
