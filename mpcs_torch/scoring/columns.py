"""Read predictions from columns: csv, and parquet if pyarrow is installed.

The columns ``NAME`` contain the scores of the classes; the column ``target`` contains labels, or the columns
``target_NAME`` contain soft labels.
"""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.scoring.chunks import Chunk, PredictionsError, is_number, rows_at_a_time

LABEL, SOFT = "target", "target_"
Row = Sequence[object]


class ColumnFile:
    """A table with a header that is read in batches of rows."""

    def __init__(self, path: Path, class_names: Sequence[str] | None, *, needs_labels: bool) -> None:
        self.path = path
        self._names = _parquet_names(path) if path.suffix == ".parquet" else _csv_names(path)
        repeated = sorted({name for name in self._names if self._names.count(name) > 1})
        if repeated:
            raise PredictionsError(path, f"columns must have different names, but {repeated} appear more than once")
        soft = [name for name in self._names if name.startswith(SOFT)]
        found = [name for name in self._names if name != LABEL and name not in soft]
        self.columns = _in_order(path, found, class_names)
        is_unlabelled = not soft and LABEL not in self._names and not needs_labels
        self._labels = [f"{SOFT}{name}" for name in self.columns] if soft else [] if is_unlabelled else [LABEL]
        if not is_unlabelled and ((LABEL in self._names) == bool(soft) or (soft and set(soft) != set(self._labels))):
            rule = f"must have a column {LABEL}, or {SOFT}NAME for each of the classes {self.columns}"
            raise PredictionsError(path, f"{rule}, but has {self._names}")
        self._label_names = {name: label for label, name in enumerate(self.columns)}

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in chunks."""
        step, first = rows_at_a_time(len(self.columns)), 1
        is_parquet = self.path.suffix == ".parquet"
        for held in _parquet_batches(self.path, step) if is_parquet else _csv_batches(self.path, self._names, step):
            by_name = dict(zip(self._names, held, strict=True))
            scores = torch.stack([self._numbers(by_name[name], name, first) for name in self.columns], dim=1)
            yield Chunk(first, scores, self._target(by_name, first) if self._labels else scores[:, :0])
            first += len(scores)

    def _target(self, by_name: dict[str, Row], first: int) -> Tensor:
        if self._labels != [LABEL]:
            return torch.stack([self._numbers(by_name[name], name, first) for name in self._labels], dim=1)
        labels = [self._label_names.get(str(value).strip(), value) for value in by_name[LABEL]]
        for row, label in enumerate(labels):
            if not is_number(label) or float(label) % 1 != 0:  # type: ignore[arg-type]  # a string may be a number
                problem = f"must be a class index or one of {self.columns[:10]}, but is {label!r}"
                raise PredictionsError(self.path, problem, row=first + row, column=LABEL)
        return self._numbers(labels, LABEL, first).long()

    def _numbers(self, values: Row, column: str, first: int) -> Tensor:
        try:
            return torch.tensor([float(value) for value in values], dtype=torch.float64)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            row = next(row for row, value in enumerate(values) if not is_number(value))
            problem = "is missing" if values[row] in (None, "") else f"must be a number, but is {values[row]!r}"
            raise PredictionsError(self.path, problem, row=first + row, column=column) from None


def _in_order(path: Path, found: list[str], class_names: Sequence[str] | None) -> list[str]:
    """Return the columns of scores in the order of the classes: by number if they are numbered, else by name."""
    unnamed = [name for name in found if not name or name.startswith(("__index", "Unnamed:"))]
    if unnamed or len(found) < 2:
        rule = f"must have a column of scores for each class, and no other columns than {LABEL}"
        raise PredictionsError(path, f"{rule}, but has {found}")
    numbered = [str(label) for label in range(len(found))]
    if set(found) == set(numbered):
        return numbered
    if class_names is None:
        return found
    if set(found) != set(class_names):
        raise PredictionsError(path, f"columns must be named after the classes {list(class_names)}, but are {found}")
    return list(class_names)


def _csv_names(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next((row for row in csv.reader(file) if row), None)
    if not header:
        raise PredictionsError(path, "must begin with a header of column names, but is empty")
    if len(header) > 1 and all(map(is_number, header)) and LABEL not in header:
        raise PredictionsError(path, f"must begin with a header of column names, but begins with {header[:3]}")
    return [name.strip() for name in header]


def _csv_batches(path: Path, names: Sequence[str], step: int) -> Iterator[list[tuple[str, ...]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = islice((row for row in csv.reader(file) if row), 1, None)
        number = 0
        while batch := list(islice(rows, step)):
            for row in batch:
                number += 1
                if len(row) != len(names):
                    _refuse_row(path, names, row, number)
            yield list(zip(*batch, strict=True))


def _refuse_row(path: Path, names: Sequence[str], row: Sequence[str], number: int) -> None:
    if len(row) < len(names):
        problem = f"is missing: the row has {len(row)} of {len(names)} values"
        raise PredictionsError(path, problem, row=number, column=names[len(row)])
    raise PredictionsError(path, f"has no name: the row has {len(row)} values", row=number, column=len(names))


def _parquet_names(path: Path) -> list[str]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise PredictionsError(path, "requires pyarrow: pip install 'mpcs_torch[parquet]'") from None
    return list(parquet.read_schema(path).names)


def _parquet_batches(path: Path, step: int) -> Iterator[list[list[object]]]:
    import pyarrow.parquet as parquet

    for batch in parquet.ParquetFile(path).iter_batches(step):
        yield [column.to_pylist() for column in batch.columns]
