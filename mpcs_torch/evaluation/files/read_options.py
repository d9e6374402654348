"""Options for reading a file, and errors that name the file, row and column. All commands share these."""

import csv
import io
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mpcs_torch.errors import (
    MAX_QUOTED,
    InvalidValueError,
    MpcsError,
    Rule,
    printable,
    shown,
    value_in_words,
)
from mpcs_torch.io.untrusted_files import FileRuleError, check_regular

NO_GROUP = "(none)"
"""The name of the group of rows without a value in the column of groups."""
Advance = Callable[[int], None]
"""A function that shows progress. Readers call it with the number of rows that they have just read."""
Missing = Literal["error", "drop"]


class ReadOptions(NamedTuple):
    """Options for reading files of predictions or detection scores: which columns to use, and how to count rows."""

    label_column: str | None = None
    """The column of labels."""
    score_columns: Sequence[str] = ()
    """The columns of scores in class order; ``*`` stands for any text. For detectors, a single column."""
    decision_column: str | None = None
    """The column of predicted labels. If it is set, predicted labels are evaluated instead of scores."""
    id_column: str | None = None
    """The column of ids that match the rows of several files, or of a file and its labels."""
    labels: Path | None = None
    """A file of labels, matched by ``id_column`` or else by row order. For detectors, a list of trials."""
    classes: Sequence[str] = ()
    """The class names in index order. If a concern names the classes, these are the file's names for them."""
    by: Sequence[str] = ()
    """Columns of groups. Each group is also evaluated alone; rows without a value form the group "(none)"."""
    cluster: str | None = None
    """A column of clusters, such as patients: rows with the same value are not independent."""
    crossed: str | None = None
    """A second column of clusters, crossed with ``cluster``: for example, each reader reads each patient."""
    weight: str | None = None
    """A column of weights, at least 0."""
    frequency: str | None = None
    """A column of whole numbers from 1: the number of independent rows that each row stands for."""
    prevalence: Mapping[str, float] | None = None
    """The share of each class where the model is used. Rows are weighted so that classes have these shares."""
    unit: str | None = None
    """A column that names what is decided about, such as a patient. Rows with the same value become one row."""
    combine: Literal["mean", "worst"] = "mean"
    """The rule that combines rows with the same ``unit``, as in `evaluate`. A detector's worst score is the highest."""
    cost_columns: Sequence[str] = ()
    """Columns with the cost of deciding for each class, in class order, or by true class; or one column of lists."""
    costs_if_wrong: bool = False
    """Whether ``cost_columns`` have what deciding for each class costs if it is wrong, as in `costs_if_wrong`."""
    missing: Missing = "error"
    """The treatment of rows without a label or score: "error" raises, "drop" leaves them out and counts them."""
    models: Sequence[str] = ()
    """The names of models that one file has side by side, in the names of columns, or below each other."""
    from_logits: bool = False
    """Whether scores are logits, not probabilities."""
    target_label: str | None = None
    """For detectors: the label of targets. All other labels mean non-targets."""
    lower_is_target: bool = False
    """For detectors: whether low scores mean targets, as with distances."""

    @property
    def columns(self) -> list[str]:
        """The requested columns of groups, clusters, units and ids."""
        names = [*self.by, self.cluster, self.crossed, self.unit, self.id_column]
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The requested columns of weights, frequencies and costs."""
        names = [self.weight, self.frequency, *self.cost_columns]
        return [name for name in names if name is not None]

    def alone(self) -> "ReadOptions":
        """Return these options for the files after the first: without groups, clusters, units, weights and costs."""
        return self._replace(
            by=(),
            cluster=None,
            crossed=None,
            weight=None,
            frequency=None,
            prevalence=None,
            unit=None,
            cost_columns=(),
        )

    def how_counted(self) -> list[str]:
        """Describe in phrases how rows are weighted, and combined into units; empty if they are not."""
        shares = (self.prevalence or {}).items()
        words = {
            "weights": self.weight,
            "frequencies": self.frequency,
            "prevalence": ", ".join(f"{name} {share:g}" for name, share in shares),
            "units": self.unit and f"{self.unit}, combined by {self.combine}",
        }
        return [f"{what} {printable(value)}" for what, value in words.items() if value]

    def in_words(self) -> list[str]:
        """Return the options that choose columns and rows as command-line arguments."""
        values = {
            "--label-column": self.label_column or "",
            "--score-columns": _joined(self.score_columns),
            "--decision-column": self.decision_column or "",
            "--classes": _joined(self.classes),
            "--models": _joined(self.models),
            "--id-column": self.id_column or "",
            "--target-label": self.target_label or "",
            "--missing": "drop" if self.missing == "drop" else "",
        }
        words = list[str]()
        for name, value in values.items():
            if value:
                words += as_arguments(name, value)
        for name in self.by:
            words += as_arguments("--by", name)
        if self.from_logits:
            words.append("--logits")
        return words

    def words_beyond(self, given: "ReadOptions") -> str:
        """Return the options that choose columns and rows, without those ``given``, as typed in a shell."""
        pairs = zip(self._fields, self, given, strict=True)
        changed: dict[str, Any] = {
            name: value for name, value, old in pairs if value != old
        }
        return shlex.join(ReadOptions(**changed).in_words())


def as_arguments(option: str, value: str) -> list[str]:
    """Return an option of a command with its value; in one argument if the value would look like an option."""
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def _joined(values: Sequence[str]) -> str:
    """Join values by commas; a value with a comma or a quote is quoted, as in csv files."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue() if values else ""


@dataclass(eq=False)
class PredictionsError(MpcsError, ValueError):
    """The error for a file that cannot be read or scored. Its sentence is made when it is printed."""

    path: Path
    rule: Rule | InvalidValueError
    """The rule that the file breaks, or an error about an argument that comes from the file."""
    _: KW_ONLY
    row: int | None = None
    """The row that breaks the rule, from 1; None if no single one does."""
    column: str | int | None = None
    """The column that breaks the rule, or its number from 1; None if no single one does."""
    value: Any = ...
    """The value that breaks the rule, None if it is missing; `...` if the message quotes none."""

    @property
    def code(self) -> str:
        """The key in `mpcs_torch.error_sentences` of the broken rule, without the advice around it."""
        rule = self.rule
        while "rule" in rule.fields:
            rule = rule.fields["rule"]
        return rule.code

    def __str__(self) -> str:
        place = [str(self.path)]
        if self.row is not None:
            place.append(f"row {self.row}")
        if self.column is not None:
            place.append(f"column {shown(str(self.column).removeprefix('column '))}")
        found = "" if self.value is ... else f", but is {value_in_words(self.value)}"
        if self.value is None:
            code = "missing_decision" if self.code == "decision_of" else "missing_value"
            found = f", but {Rule(code)}"
        return printable(f"{', '.join(place)}: {self.rule}{found}")


class NoRowsError(PredictionsError):
    """The error for a file that has no rows, but to which rows may still be added."""


@contextmanager
def reading(path: Path, row: int | None = None) -> Iterator[None]:
    """Turn any error in the with block into a `PredictionsError` that names the file and, if given, the row.

    Unless ``row`` is given, also refuse a ``path`` that is not a regular file.
    """
    try:
        if row is None:
            check_regular(path)
        yield
    except (PredictionsError, FileNotFoundError):
        raise
    except FileRuleError as error:
        raise PredictionsError(path, error, row=row) from None
    except UnicodeDecodeError as error:
        raise PredictionsError(path, Rule("utf_8", error=error), row=row) from None
    except RecursionError:
        raise PredictionsError(path, Rule("not_so_deep"), row=row) from None
    except ImportError as error:
        extra = {"openpyxl": "xlsx", "h5py": "hdf5"}.get(error.name or "", "cli")
        raise PredictionsError(
            path, Rule("requires", package=str(error.name), extra=extra)
        ) from None
    except Exception as error:
        # The parsers of zip, npy, pickle, csv and parquet raise many kinds of errors.
        lines = str(error).splitlines() or [type(error).__name__]
        raise PredictionsError(
            path, Rule("readable", reason=lines[0][: 2 * MAX_QUOTED]), row=row
        ) from error


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Turn a ValueError in the with block into a `PredictionsError` that names the file ``path``."""
    try:
        yield
    except PredictionsError:
        raise
    except InvalidValueError as error:
        raise PredictionsError(path, error) from None
    except ValueError as error:
        raise PredictionsError(path, Rule("accepted", error=error)) from None


def file_names(paths: Sequence[Path]) -> list[str]:
    """Return a display name for each path: the name of the only file, or the names of several files without suffix.

    If two of these names are equal, the paths are used. A file that is given twice is refused.
    """
    for place, path in enumerate(paths):
        if any(path.samefile(other) for other in paths[:place]):
            raise PredictionsError(path, Rule("given_twice"))
    names = [path.name if len(paths) == 1 else path.stem for path in paths]
    if len({*names}) < len(names):
        names = [*map(str, paths)]
    return [printable(name) for name in names]
