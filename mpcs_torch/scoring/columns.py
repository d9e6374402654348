"""Predictions as columns: csv, and parquet where pyarrow is installed.

The column ``target`` holds labels, or columns ``target_NAME`` hold degrees of truth; all others are scores, in order.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor

from mpcs_torch.scoring.chunks import ROWS, Chunk, PredictionsError

LABEL = "target"
SOFT = "target_"


class ColumnFile:
    """A table with a header, read by batches of rows."""

    def __init__(self, path: Path, class_names: Sequence[str] | None) -> None:
        self.path, self._class_names = path, class_names
        self._names = _parquet_names(path) if path.suffix == ".parquet" else _csv_names(path)
        repeated = {name for name in self._names if self._names.count(name) > 1}
        if repeated:
            raise PredictionsError(path, f"columns must have different names, but {sorted(repeated)} are repeated")
        soft = [name for name in self._names if name.startswith(SOFT)]
        self.columns = [name for name in self._names if name != LABEL and name not in soft]
        if len(self.columns) < 2:
            raise PredictionsError(path, f"must have a column of scores for each class, but has {self.columns}")
        if (LABEL in self._names) == bool(soft) or len(soft) not in (0, len(self.columns)):
            rule = f"must have a column {LABEL}, or {SOFT}NAME for each of the {len(self.columns)} classes"
            raise PredictionsError(path, f"{rule}, but has {self._names}")
        self._labels = soft or [LABEL]

    def chunks(self) -> Iterator[Chunk]:
        """All rows."""
        first = 1
        for held in _parquet_batches(self.path) if self.path.suffix == ".parquet" else _csv_batches(self.path):
            by_name = dict(zip(self._names, held, strict=True))
            scores = torch.stack([self._numbers(by_name[name], name, first) for name in self.columns], dim=1)
            yield Chunk(first, scores, self._target(by_name, first))
            first += len(scores)

    def _target(self, by_name: dict[str, Sequence[object]], first: int) -> Tensor:
        if self._labels != [LABEL]:
            return torch.stack([self._numbers(by_name[name], name, first) for name in self._labels], dim=1)
        names = {name: label for label, name in enumerate(self._class_names or ())}
        labels = [names.get(str(value), value) for value in by_name[LABEL]]
        numbers = self._numbers(labels, LABEL, first)
        whole = numbers.long()
        if (whole != numbers).any():
            row = int((whole != numbers).nonzero()[0])
            raise PredictionsError(
                self.path, f"must be a class index, but is {labels[row]}", row=first + row, column=LABEL
            )
        return whole

    def _numbers(self, values: Sequence[object], column: str, first: int) -> Tensor:
        try:
            return torch.tensor([float(value) for value in values], dtype=torch.float64)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            row = next(row for row, value in enumerate(values) if not _is_number(value))
            problem = "is missing" if values[row] in (None, "") else f"must be a number, but is {values[row]!r}"
            raise PredictionsError(self.path, problem, row=first + row, column=column) from None


def _csv_names(path: Path) -> list[str]:
    with _open_csv(path) as file:
        header = next(csv.reader(file), None)
    if not header:
        raise PredictionsError(path, "must begin with a header of column names, but is empty")
    if all(map(_is_number, header)):
        raise PredictionsError(path, f"must begin with a header of column names, but begins with numbers: {header[:3]}")
    return [name.strip() for name in header]


def _csv_batches(path: Path) -> Iterator[list[tuple[str, ...]]]:
    with _open_csv(path) as file:
        reader = csv.reader(file)
        header, first = next(reader), 1
        rows: list[list[str]] = []
        try:
            for row in reader:
                if len(row) != len(header):
                    _refuse_row(path, header, row, first + len(rows))
                rows.append(row)
                if len(rows) == ROWS:
                    yield list(zip(*rows, strict=True))
                    first, rows = first + len(rows), []
        except (csv.Error, UnicodeDecodeError) as error:
            raise PredictionsError(path, f"is no csv text: {error}", row=first + len(rows)) from None
        if rows:
            yield list(zip(*rows, strict=True))


def _refuse_row(path: Path, header: Sequence[str], row: Sequence[str], number: int) -> None:
    if len(row) < len(header):
        problem = f"is missing: the row has {len(row)} of {len(header)} values"
        raise PredictionsError(path, problem, row=number, column=header[len(row)])
    raise PredictionsError(path, f"has no name: the row has {len(row)} values", row=number, column=len(header) + 1)


def _open_csv(path: Path) -> TextIO:
    return path.open(newline="", encoding="utf-8-sig")


def _parquet_names(path: Path) -> list[str]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise PredictionsError(path, "needs pyarrow to be read: pip install 'mpcs_torch[parquet]'") from None
    from pyarrow import ArrowInvalid

    try:
        return list(parquet.read_schema(path).names)
    except ArrowInvalid as error:
        raise PredictionsError(path, f"is no whole parquet file: {error}") from None


def _parquet_batches(path: Path) -> Iterator[list[list[object]]]:
    import pyarrow.parquet as parquet

    for batch in parquet.ParquetFile(path).iter_batches(ROWS):
        yield [column.to_pylist() for column in batch.columns]


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
