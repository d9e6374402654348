"""Options for reading a file: one set, the same in all commands and functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from mpcs_torch.errors import printable

Missing = Literal["error", "drop"]


class ReadOptions(NamedTuple):
    """Options for what the content of files of predictions or of scores leaves open."""

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
    """A column of clusters: rows that share a value, such as a patient, are not independent."""
    crossed: str | None = None
    """A second such column, neither a part of the first nor the reverse: rows that share both are clusters."""
    weight: str | None = None
    """A column of weights: numbers from 0."""
    frequency: str | None = None
    """A column of whole numbers from 1: how many independent rows each row stands for."""
    prevalence: Mapping[str, float] | None = None
    """The share of each class where the model is used, by which rows are weighted."""
    unit: str | None = None
    """A column of units of decision, such as patients: the rows of each unit become one row."""
    combine: Literal["mean", "worst"] = "mean"
    """The rule that combines the rows of a unit, as in `evaluate`; the worst of scores of detectors is the highest."""
    cost_columns: Sequence[str] = ()
    """Columns with the cost of deciding for each class, in the order of the classes; or one column of lists."""
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
        """The requested columns of groups, clusters, units and ids."""
        names = [*self.by, self.cluster, self.crossed, self.unit, self.id_column]
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The requested columns of weights, frequencies and costs."""
        return [name for name in (self.weight, self.frequency, *self.cost_columns) if name is not None]

    def alone(self) -> "ReadOptions":
        """Return the options for a file after the first one, which alone defines groups, clusters and weights."""
        return self._replace(
            by=(), cluster=None, crossed=None, weight=None, frequency=None, prevalence=None, unit=None, cost_columns=()
        )

    def clusterings(self) -> "list[ReadOptions]":
        """Return these options with the first column of clusters, with the second, and with both."""
        return [self._replace(crossed=None), self._replace(cluster=self.crossed, crossed=None), self]

    def how_counted(self) -> str:
        """Return a phrase on the weights of rows and on their units; empty without any."""
        shares = ", ".join(f"{name} {share:g}" for name, share in (self.prevalence or {}).items())
        words = {"weights": self.weight, "frequencies": self.frequency, "prevalence": shares}
        words["units"] = None if self.unit is None else f"{self.unit}, combined by {self.combine}"
        return "".join(f"; {what} {printable(value)}" for what, value in words.items() if value)

    def in_words(self) -> list[str]:
        """Return the options as arguments of a command line."""
        given = {"--label-column": self.label_column, "--decision-column": self.decision_column}
        given |= {"--score-columns": ",".join(self.score_columns), "--classes": ",".join(self.classes)}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return [*words, *(["--missing", "drop"] if self.missing == "drop" else []), *(["--logits"] * self.from_logits)]


NO_GROUP = "(none)"
"""The group of rows without one."""
