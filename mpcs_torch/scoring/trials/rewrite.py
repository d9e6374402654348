"""Copy files of trials with changed scores."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.files import replace_whole
from mpcs_torch.scoring.chunks import PredictionsError, lines_of, reading
from mpcs_torch.scoring.csv_file import CsvFile, write_csv_rows
from mpcs_torch.scoring.hdf5_file import SUFFIXES
from mpcs_torch.scoring.parquet_file import parquet_names
from mpcs_torch.scoring.trials.table import ROWS, scores_of, texts_of
from mpcs_torch.scoring.trials.text import PAIR, numbered_rows, parse_scores, refuse_binary, split_lines

TABLES = (".csv", ".parquet")
Change = Callable[..., Tensor]
Rows = Iterator[tuple[Sequence[int], list[list[str]]]]


def rewrite_scores(
    path: Path, out: Path, change: Change, advance: Callable[[int], None], *, given: Sequence[str] = ()
) -> None:
    """Copy a file of trials with changed scores; labels, names and further columns stay, and none is needed.

    Args:
        path: A csv or parquet file with a column ``score``, or a text file with one trial on each line: a score, score
            and label, or two names and a score.
        out: The file to write, in the same format.
        change: Maps scores (n,), float64, and n texts of each of the ``given`` columns to new scores.
        advance: Called with the number of rows after each batch.
        given: The columns that ``change`` takes. Two names on a line are those of enrollment and test.

    Raises:
        PredictionsError: If the file cannot be read, a score is not a number, a given column is missing, or ``out``
            names another format.
    """
    suffix, other = path.suffix.lower(), out.suffix.lower()
    kind = suffix if suffix in TABLES else ""
    if kind != (other if other in TABLES else ""):
        rule = f"must end in {kind}" if kind else f"must not end in {other}"
        raise PredictionsError(out, f"{rule}, because the format is that of {path}")

    def copy(file: BinaryIO) -> None:
        with reading(path):
            if suffix in (".npz", *SUFFIXES):
                raise PredictionsError(path, "must be csv, parquet or text: `mpcs convert` writes these")
            if kind == ".parquet":
                _copy_parquet(file, path, change, advance, given)
            else:
                _copy_rows(file, path, change, advance, given, is_csv=kind == ".csv")

    replace_whole(out, copy)


def _copy_parquet(
    file: BinaryIO, path: Path, change: Change, advance: Callable[[int], None], given: Sequence[str]
) -> None:
    names = parquet_names(path)
    _check_given(path, names, ["score", *given])
    import pyarrow
    from pyarrow import parquet

    opened, place, first = parquet.ParquetFile(path), names.index("score"), 1
    field = pyarrow.field("score", pyarrow.float64())
    with parquet.ParquetWriter(file, opened.schema_arrow.set(place, field)) as writer:
        for read in opened.iter_batches(ROWS):
            scores = scores_of(path, read.column(place), first)
            texts = (texts_of(path, read.column(names.index(name)), name, first).to_pylist() for name in given)
            changed = change(torch.from_numpy(np.array(scores)), *texts).numpy()
            writer.write_batch(read.set_column(place, field, pyarrow.array(changed, field.type)))
            first += len(read)
            advance(len(read))


def _copy_rows(
    file: BinaryIO,
    path: Path,
    change: Change,
    advance: Callable[[int], None],
    given: Sequence[str],
    *,
    is_csv: bool,
) -> None:
    refuse_binary(path)
    header, names, batches = _csv_rows(path) if is_csv else _text_rows(path)
    _check_given(path, names, given)
    place, places = names.index("score"), [names.index(name) for name in given]
    _write_rows(file, header, is_csv=is_csv)
    for rows, held in batches:
        scores = torch.tensor(parse_scores(path, rows, [fields[place] for fields in held]), dtype=torch.float64)
        texts = [[fields[column] for fields in held] for column in places]
        for name, column in zip(given, texts, strict=True):
            if "" in column:
                raise PredictionsError(path, "is missing", row=rows[column.index("")], column=name)
        for fields, score in zip(held, change(scores, *texts).tolist(), strict=True):
            fields[place] = repr(score)
        _write_rows(file, held, is_csv=is_csv)
        advance(len(held))


def _check_given(path: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    if not set(needed) <= set(names):
        raise PredictionsError(path, f"must have the columns {quoted(list(needed))}, but has {quoted(list(names))}")


def _csv_rows(path: Path) -> tuple[list[list[str]], list[str], Rows]:
    """Return the header, the names of the columns, and the rows."""
    file = CsvFile(path)
    if "score" not in file.names:
        raise PredictionsError(
            path, f"must begin with a header that contains score, but begins with {quoted(file.names)}"
        )
    return [file.header], file.names, numbered_rows(file.rows())


def _text_rows(path: Path) -> tuple[list[list[str]], list[str], Rows]:
    """Return no header, the names of the fields, and the lines."""
    with path.open(encoding="utf-8-sig") as file:
        count = next((len(fields) for line in lines_of(file, path) if (fields := line.split())), 0)
    if count not in (1, 2, 3):
        raise PredictionsError(path, f"must contain 1 to 3 fields on each line, but begins with {count}")
    names = [*PAIR, "score"] if count == 3 else ["score", "label"][:count]
    return [], names, split_lines(path, count, f"{count} fields as its first line does")


def _write_rows(file: BinaryIO, rows: Sequence[Sequence[str]], *, is_csv: bool) -> None:
    if is_csv:
        write_csv_rows(file, rows)
    else:
        file.writelines(f"{' '.join(row)}\n".encode() for row in rows)
