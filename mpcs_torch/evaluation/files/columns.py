"""Read predictions from columns of csv and parquet files, whose roles their names and values tell."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import has_control, quoted, shown
from mpcs_torch.evaluation.files.chunks import Chunk, PredictionsError, is_number, reading, rows_at_a_time
from mpcs_torch.evaluation.files.tables import (
    Batch,
    CsvFile,
    labels_of,
    numbers_of,
    parquet_batches,
    parquet_names,
    parquet_rows,
)

LABEL, SOFT = "target", "target_"
LABELS = (LABEL, "label", "labels", "y_true", "true_label", "ground_truth", "truth", "y", "class")
"""Names of a column of labels, of which a table has one."""
IDS = (
    *("id", "ids", "index", "idx", "row_id", "sample_id", "image_id", "uid", "uuid"),
    *("filename", "file", "path", "image"),
)
DECIDED = ("pred", "preds", "prediction", "predictions", "predicted", "predicted_label", "predicted_class", "y_pred")
"""Names of a column of predicted classes."""
DECISION, REFERRAL = "decision", "refer"
"""The column of decisions that `mpcs decide apply` writes, and what stands there for a referral."""
PEEKED_ROWS, PEEKED_VALUES = 100, 10**5
"""The most values of a table that are read to see what its columns hold."""
COUNTED_ROWS, COUNTED_VALUES = 10**4, 10**6
"""The most that are read to see whether values repeat."""

Kind = Literal["text", "whole", "number"]
"""No value is a number; all are whole numbers; anything else."""


def decision_numbers(concern: ConcernSpec) -> dict[str, int]:
    """Return the number of each decision by name: the classes, the coarse answers, and last a referral."""
    names = [*concern.classes, *(answer for answer, _ in concern.answers)]
    return {**{name: number for number, name in enumerate(names)}, REFERRAL: -1}


class ColumnOptions(NamedTuple):
    """The options of the user about columns."""

    target: str | None = None
    """The column of labels."""
    ignored: Sequence[str] = ()
    identifier: str | None = None
    """The column by which rows of several files are matched."""


def find_roles(
    path: Path,
    names: Sequence[str],
    peek: Callable[[], Mapping[str, Sequence[Any]]],
    *,
    class_names: Sequence[str] | None,
    options: ColumnOptions,
) -> tuple[list[str], str | None, list[str], list[str]]:
    """Return what the columns are.

    Args:
        path: The file, for errors.
        names: The columns, without those of groups.
        peek: Reads the first values of the columns; not called if the names say everything.
        class_names: The names of the classes, which are always scores.
        options: The user's options about columns.

    Returns:
        Columns that may be classes, in the order of the table; the column of labels; columns of soft labels; and
        sentences on columns that are not read.
    """
    if options.target is not None and options.target not in names:
        raise PredictionsError(path, f"has no column {quoted(options.target)} of --target-column, but {quoted(names)}")
    out = {*options.ignored, *([] if options.identifier is None else [options.identifier])}
    left = [name for name in names if name not in out]
    soft = [] if options.target is not None else [name for name in left if name.startswith(SOFT)]
    left = [name for name in left if name not in soft]
    label = LABEL if options.target is None and LABEL in left and LABEL not in (class_names or ()) else options.target
    others = [name for name in left if name != label]
    if others and set(others) in (set(class_names or ()), {str(number) for number in range(len(others))}):
        return others, label, soft, []
    values = peek()
    if not any(len(column) for column in values.values()):
        raise PredictionsError(path, "has a header, but no rows")
    kinds = {name: kind_of(values[name]) for name in others}
    if label is None and not soft:
        label = _label_among(path, kinds, class_names)
        others = [name for name in others if name != label]
    why = {
        name: reason
        for name in others
        if name not in (class_names or ()) and (reason := _other_use(name, kinds[name])) is not None
    }
    listed = ", ".join(f"{quoted(shown(name))} ({reason})" for name, reason in list(why.items())[:10])
    more = f" and {len(why) - 10} more" if len(why) > 10 else ""
    notes = [f"Columns that are no scores of classes: {listed}{more}."] if why else []
    return [name for name in others if name not in why], label, soft, notes


def kind_of(values: Sequence[Any]) -> Kind:
    """Return what the values of a column are; empty ones say nothing."""
    filled = [value for value in values if value is not None and str(value).strip()]
    if filled and not any(is_number(value) for value in filled):
        return "text"
    is_whole = filled and all(is_number(value) and float(value) % 1 == 0 for value in filled)
    return "whole" if is_whole else "number"


def _label_among(path: Path, kinds: Mapping[str, Kind], class_names: Sequence[str] | None) -> str | None:
    """Return the only column with a name of labels that holds no scores."""
    named = [
        name
        for name, kind in kinds.items()
        if name.lower() in LABELS and kind != "number" and name not in (class_names or ())
    ]
    if len(named) > 1:
        problem = f"has several columns that may be the labels, {quoted(named)}: name it with --target-column"
        raise PredictionsError(path, problem)
    return named[0] if named else None


def _other_use(name: str, kind: Kind) -> str | None:
    """Return what a column holds that cannot be scores; None if it may be a class."""
    if kind == "number":
        return None
    if not name or name.startswith(("Unnamed:", "__index_level_")):  # as pandas calls its index
        return "an index"
    if name.lower() in IDS:
        return "ids; --id-column matches files by them"
    if name.lower() in DECIDED:
        return "decisions, which are taken from the scores instead"
    return "text" if kind == "text" else None


MOST_EXACT = 2**53 - 1
"""Whole numbers beyond it may become others as float64, so they are quoted as the file has them."""


class ColumnFile:
    """A table with a header that is read in batches of rows."""

    def __init__(
        self,
        path: Path,
        class_names: Sequence[str] | None,
        *,
        needs_labels: bool,
        texts: Sequence[str] = (),
        options: ColumnOptions | None = None,
        decisions: Mapping[str, int] | None = None,
    ) -> None:
        self.path, self._decisions = path, decisions or {}
        self._csv = None if path.suffix == ".parquet" else _csv_file(path)
        names = parquet_names(path) if self._csv is None else self._csv.names
        controlling = next((name for name in names if has_control(name)), None)
        if controlling is not None:
            problem = f"names of classes must not have control characters, but one is {quoted(controlling)}"
            raise PredictionsError(path, problem)
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise PredictionsError(
                path, f"columns must have different names, but {quoted(repeated)} appear more than once"
            )
        chosen = options or ColumnOptions()
        usual = chosen.target or LABEL
        taken = {usual, *(class_names or ())} & set(texts)
        if taken:
            raise PredictionsError(path, f"column {quoted(min(taken))} is a class or {usual}, so it cannot name groups")
        self._texts = [name for name in names if name in texts]
        names = [name for name in names if name not in texts]
        self.is_decided = DECISION in names and not set(class_names or ()) & set(names)
        """Whether rows have a decision instead of scores."""
        scores, self._label_column, soft, self.notes = find_roles(
            path, names, lambda: self._peek(names), class_names=class_names, options=chosen
        )
        hint = "" if options is None else "; for a column that is no class, pass --ignore COLUMN"
        if self.is_decided:
            if not class_names or not decisions:
                problem = f"has a column {quoted(DECISION)}, but no concern that names its classes and answers"
                raise PredictionsError(path, f"{problem}: --concern FILE" if class_names is None else problem)
            self.columns, self.notes, soft = list(class_names), [], []
        else:
            self.columns = _in_order(path, scores, class_names, fewest=1 if soft else 2, hint=hint)
        label = self._label_column
        self._labels = [f"{SOFT}{name}" for name in self.columns] if soft else [label] if label else []
        is_unlabelled = not soft and label is None and not needs_labels
        if not is_unlabelled and ((label is None) != bool(soft) or (soft and set(soft) != set(self._labels))):
            rule = f"must have a column {LABEL}, or {SOFT}NAME for each of the classes {quoted(self.columns)}"
            hint = "" if options is None else "; --target-column COLUMN names another"
            raise PredictionsError(path, f"{rule}, but has {quoted(names)}{hint}")
        self._label_names = {name: label for label, name in enumerate(self.columns)}

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the file must be read to count them."""
        return parquet_rows(self.path) if self._csv is None else None

    def chunks(self, part: range | None = None) -> Iterator[Chunk]:
        """Yield all rows in chunks, or a part of the rows of a parquet file."""
        for batch in self._batches(part):
            scores = self._made(batch) if self.is_decided else self._matrix(batch, self.columns)
            target = self._target(batch) if self._labels else scores[:, :0]
            yield Chunk(batch.first_row, scores, target, {name: batch.columns[name] for name in self._texts})

    def unread(self) -> dict[str, tuple[set[str], int]]:
        """Return the distinct texts, and the number of texts, of each column that is not read, of the first rows."""
        read = {*self.columns, *self._labels, *self._texts, *([DECISION] if self.is_decided else [])}
        names, unread = names_in(self.path), dict[str, tuple[set[str], int]]()
        if left := [name for name in names if name not in read]:
            values = self._peek(left, min(COUNTED_ROWS, max(1, COUNTED_VALUES // len(names))))
            for name in left:
                texts = [str(value) for value in values[name] if value not in (None, "")]
                if not {*texts} <= {*self.columns, *self._decisions}:
                    unread[name] = {*texts}, len(texts)
        return unread

    def _peek(self, names: Sequence[str], rows: int | None = None) -> Mapping[str, Sequence[Any]]:
        """Return the first values of each column."""
        rows = rows or min(PEEKED_ROWS, max(1, PEEKED_VALUES // len(names)))
        if self._csv is not None:
            first_rows = list(islice(self._csv.rows(), rows))
            return {name: [row[place] for row in first_rows] for place, name in enumerate(self._csv.names)}
        batch = next(iter(parquet_batches(self.path, rows, names)), None)
        return {name: [] if batch is None else batch.columns[name].to_pylist() for name in names}

    def _batches(self, part: range | None) -> Iterator[Batch]:
        scores = [] if self.is_decided else self.columns
        decisions = [DECISION] if self.is_decided else []
        if self._csv is None:
            read = [*scores, *decisions, *self._labels, *self._texts]
            return parquet_batches(self.path, rows_at_a_time(len(self.columns)), read, part)
        if self._label_column is not None:
            return self._csv.batches(numbers=scores, texts=[*decisions, *self._labels, *self._texts])
        return self._csv.batches(numbers=[*self.columns, *self._labels], texts=self._texts)

    def _made(self, batch: Batch) -> Tensor:
        """Return the column of decisions: int64 (n, 1)."""
        rule = f"must be one of {quoted(list(self._decisions)[:10])}"
        column = batch.columns[DECISION]
        made = labels_of(
            self.path, column, DECISION, batch.first_row, lambda value: self._decisions.get(str(value).strip()), rule
        )
        return torch.from_numpy(made).unsqueeze(1)

    def _target(self, batch: Batch) -> Tensor:
        column = self._label_column
        if column is None:
            return self._matrix(batch, self._labels)
        rule = f"must be a class index or one of {quoted(self.columns[:10])}"
        labels = labels_of(self.path, batch.columns[column], column, batch.first_row, self._label, rule, self._renaming)
        return torch.from_numpy(labels)

    def _renaming(self, value: Any) -> str:
        return _to_rename(self.columns, [str(value).strip()])

    def _matrix(self, batch: Batch, names: Sequence[str]) -> Tensor:
        """Return columns of numbers as a matrix: float64 (n, columns)."""
        columns = [numbers_of(self.path, batch.columns[name], name, batch.first_row) for name in names]
        return torch.from_numpy(np.stack(columns, axis=1))

    def _label(self, value: Any) -> int | None:
        label = self._label_names.get(str(value).strip(), value)
        if not is_number(label) or float(label) % 1 != 0 or abs(float(label)) > MOST_EXACT:
            return None
        return int(float(label))


def names_in(path: Path) -> list[str]:
    """Return the names of the columns of a table."""
    with reading(path):
        return parquet_names(path) if path.suffix == ".parquet" else _csv_file(path).names


def check_texts(path: Path, texts: Sequence[str]) -> None:
    """Refuse a table without some columns of texts, before it is refused for a class of another name."""
    names = names_in(path)
    missing = [name for name in texts if name not in names]
    if missing:
        raise PredictionsError(path, f"must have a column {quoted(missing[0])}, but has {quoted(names)}")


def _in_order(path: Path, names: list[str], class_names: Sequence[str] | None, *, fewest: int, hint: str) -> list[str]:
    """Return the columns of scores in the order of the classes: by number if they are numbered, else by name."""
    unnamed = [name for name in names if not name or name.startswith(("__index", "Unnamed:"))]
    if unnamed or len(names) < fewest:
        rule = f"must have a column of scores for each class, and no other columns of numbers than {LABEL}"
        raise PredictionsError(path, f"{rule}, but has {quoted(names)}{hint}")
    numbered = [str(label) for label in range(len(names))]
    if set(names) == set(numbered):
        return numbered
    if class_names is None:
        return names
    if set(names) != set(class_names):
        rule = f"columns must be named after the classes {quoted(list(class_names))}"
        raise PredictionsError(
            path,
            f"{rule}, but are {quoted(names)}{hint if set(names) > set(class_names) else ''}"
            f"{_to_rename(names, class_names)}",
        )
    return list(class_names)


def _to_rename(columns: Sequence[str], classes: Sequence[str]) -> str:
    """Return what to rename, where columns are named as classes but for case or for what comes before the name."""
    for name in classes:
        for column in columns:
            if column != name and column.lower() == name.lower():
                return f"; {quoted(column)} and {quoted(name)} differ in case: write them alike"
            before = column.lower().removesuffix(name.lower())
            if name and before and before[-1] in "_-. " and column.lower() != before:
                return f"; name the column {quoted(column)} just {quoted(name)}, and the others likewise"
    return ""


def _csv_file(path: Path) -> CsvFile:
    file = CsvFile(path)
    if not file.header:
        raise PredictionsError(path, "must begin with a header of column names, but is empty")
    other = next((mark for mark in ";\t|" if len(file.header) == 1 and mark in file.header[0]), None)
    if other is not None:
        problem = f"columns must be separated by commas, but seem to be by {quoted(other)}: write commas"
        raise PredictionsError(path, problem)
    if len(file.header) > 1 and all(map(is_number, file.header)) and LABEL not in file.header:
        raise PredictionsError(
            path, f"must begin with a header of column names, but begins with {quoted(file.header[:3])}"
        )
    return file
