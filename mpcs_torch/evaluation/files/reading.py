"""Options for reading a file, and errors that name a place in a file. All commands and functions share these."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from mpcs_torch.errors import MAX_QUOTED, MpcsError, printable, shown
from mpcs_torch.io.untrusted_files import FileRuleError, check_regular

NO_GROUP = "(none)"
"""The name of the group of rows that have no value in the column of groups."""
Advance = Callable[[int], None]
"""A function that shows progress: it is called with the number of rows of each file that was read."""
Missing = Literal["error", "drop"]


class ReadOptions(NamedTuple):
    """Options for reading files of predictions or scores, where their content leaves several readings open."""

    label_column: str | None = None
    """The column of labels."""
    score_columns: Sequence[str] = ()
    """The columns of scores, in the order of the classes; ``*`` stands for any text. Detectors have one column."""
    decision_column: str | None = None
    """The column of predicted labels. If it is set, predicted labels are evaluated instead of scores."""
    id_column: str | None = None
    """The column of ids, by which the rows of several files, or of a file and its labels, are matched."""
    labels: Path | None = None
    """A file with the labels, matched by ``id_column`` or else by the order of rows; or a detector's list of trials."""
    classes: Sequence[str] = ()
    """The class names in order. If a concern already names the classes, these are the names that the file uses."""
    by: Sequence[str] = ()
    """Columns of groups. Each group is also evaluated alone; rows without a value form the group "(none)"."""
    cluster: str | None = None
    """A column of clusters, such as patients: rows with the same value are not independent."""
    crossed: str | None = None
    """A second column of clusters, crossed with the first and not nested in it, such as readers besides patients."""
    weight: str | None = None
    """A column of weights, at least 0."""
    frequency: str | None = None
    """A column of whole numbers from 1: the number of independent rows that each row stands for."""
    prevalence: Mapping[str, float] | None = None
    """The share of each class where the model is used; rows are weighted to have these shares."""
    unit: str | None = None
    """A column of units of decision, such as patients: the rows of each unit become one row."""
    combine: Literal["mean", "worst"] = "mean"
    """The rule that combines the rows of a unit, as in `evaluate`; for detectors, the worst score is the highest."""
    cost_columns: Sequence[str] = ()
    """Columns with the cost of deciding for each class, in the order of the classes; or one column of lists."""
    missing: Missing = "error"
    """The treatment of a row without a label or a score: an error, or left out and counted."""
    from_logits: bool = False
    """Whether scores are logits, not probabilities."""
    target_label: str | None = None
    """For detectors: the label of targets; all other labels are those of non-targets."""
    lower_is_target: bool = False
    """For detectors: whether targets have low scores, as they do if scores are distances."""

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
        """Return the options for further files: without groups, clusters and weights, which the first file has."""
        return self._replace(
            by=(), cluster=None, crossed=None, weight=None, frequency=None, prevalence=None, unit=None, cost_columns=()
        )

    def how_counted(self) -> str:
        """Describe the weights and units of rows in a phrase; empty if there are none."""
        shares = ", ".join(f"{name} {share:g}" for name, share in (self.prevalence or {}).items())
        words = {"weights": self.weight, "frequencies": self.frequency, "prevalence": shares}
        words["units"] = None if self.unit is None else f"{self.unit}, combined by {self.combine}"
        return "".join(f"; {what} {printable(value)}" for what, value in words.items() if value)

    def in_words(self) -> list[str]:
        """Return the options that choose columns and rows as command-line arguments."""
        given = {"--label-column": self.label_column, "--decision-column": self.decision_column}
        given |= {"--score-columns": ",".join(self.score_columns), "--classes": ",".join(self.classes)}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return [*words, *(["--missing", "drop"] if self.missing == "drop" else []), *(["--logits"] * self.from_logits)]


class PredictionsError(MpcsError, ValueError):
    """The error for a file that cannot be read or scored. It names the place; rows have numbers from 1."""

    def __init__(self, path: Path, problem: str, *, row: int | None = None, column: str | int | None = None) -> None:
        place = [str(path)]
        place += [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column {shown(str(column).removeprefix('column '))}"]
        super().__init__(printable(f"{', '.join(place)}: {problem}"))


class NoRowsError(PredictionsError):
    """The error for a file that has no rows, but to which rows may still be added."""


@contextmanager
def reading(path: Path, row: int | None = None) -> Iterator[None]:
    """Turn any error of a parser into a `PredictionsError` that names the file and, if given, the row.

    A path that is not a regular file is refused before anything is read.
    """
    try:
        if row is None:
            check_regular(path)
        yield
    except (PredictionsError, FileNotFoundError):
        raise
    except FileRuleError as error:
        raise PredictionsError(path, str(error), row=row) from None
    except UnicodeDecodeError as error:
        raise PredictionsError(path, f"cannot be read: {error}; save it as UTF-8", row=row) from None
    except ImportError as error:
        extra = {"openpyxl": "xlsx", "h5py": "hdf5"}.get(error.name or "", "cli")
        raise PredictionsError(path, f"requires {error.name}: pip install 'mpcs_torch[{extra}]'") from None
    except Exception as error:  # the parsers of zip, npy, pickle, csv and parquet raise many kinds
        reason = str(error).splitlines()[0][: 2 * MAX_QUOTED] if str(error) else type(error).__name__
        raise PredictionsError(path, f"cannot be read: {reason}", row=row) from error


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Turn a ValueError about the values of a file into a `PredictionsError` that names the file."""
    try:
        yield
    except PredictionsError:
        raise
    except ValueError as error:
        raise PredictionsError(path, str(error).rstrip(".")) from None


def file_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of a single file. For several files, return names without suffix, or paths if names repeat.

    A file that is given twice is refused.
    """
    for place, path in enumerate(paths):
        if any(path.samefile(other) for other in paths[:place]):
            raise PredictionsError(path, "is given twice, but each model must have a file of its own")
    names = [path.name if len(paths) == 1 else path.stem for path in paths]
    return [printable(name) for name in (names if len(set(names)) == len(names) else map(str, paths))]
