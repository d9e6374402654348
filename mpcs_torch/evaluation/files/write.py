"""Write trials in several formats, and copies of files with changed columns, such as calibrated scores."""

import csv
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.delimited import SPACE
from mpcs_torch.evaluation.files.formats import check_names, open_text
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.evaluation.files.row_ids import PAIR, RowIds
from mpcs_torch.evaluation.files.tables import (
    Column,
    FileTable,
    ReadColumns,
    unnamed,
    without_decimals,
)
from mpcs_torch.evaluation.files.trials import TrialTable
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.io.atomic_files import replace_file, replace_files
from mpcs_torch.io.local_paths import local_path

RESERVED = ("score", "label", "scores", "labels")
TABLES = (".csv", ".parquet", ".npz")
"""The formats that can store all columns of trials."""
ARRAYS = (".npz", ".npy", ".pt", ".pth")
OTHER_FORMATS = (
    ".h5",
    ".hdf5",
    *ARRAYS,
    ".xlsx",
    ".json",
    ".jsonl",
    ".arrow",
    ".gz",
    ".bz2",
    ".zst",
)
CLASSES = "classes"
"""The name of the array of class names that is written beside arrays of scores."""
Columns = dict[str, Any]
"""Columns by name, each an array or a list with one value per row."""


def copy_table(
    table: FileTable,
    out: Path,
    change: Callable[[ReadColumns], Columns],
    *,
    has_names: bool = False,
    names: Mapping[str, str] | None = None,
) -> None:
    """Copy a table to ``out``, and replace or add columns; all other columns keep their names, order and texts.

    The suffix of ``out`` decides the format: parquet; npz or pt, if ``table`` is a file of arrays, with class names; or
    else text like that of ``table``. But white space between columns is written as tabs, and commas between decimal
    commas as semicolons. The file is written atomically.

    Args:
        table: The table to copy.
        out: The file to write.
        change: Takes all columns of ``table``, and returns the columns that are new or changed, by name.
        has_names: Whether text must have a header even if ``table`` has none.
        names: What columns of a table without a header are called in a file with one. Default: "column 1" and so on.
    """
    check_copy(table, out)
    suffix = out.suffix.lower()
    read = table.read(table.names)
    columns = _columns_for(suffix, table, read) | change(read)
    has_names = has_names or table.has_names or suffix in WRITERS
    if has_names and not table.has_names:
        renamed = [(names or {}).get(name, name) for name in columns]
        check_names(out, renamed)
        columns = dict(zip(renamed, columns.values(), strict=True))
    delimiter = table.delimiter
    if delimiter == SPACE:
        delimiter = "\t"
    elif delimiter == table.decimal:
        delimiter = ";"
    text = partial(
        write_text,
        path=out,
        delimiter=delimiter,
        decimal=table.decimal,
        has_names=has_names,
    )
    write = WRITERS.get(suffix, text)
    replace_file(out, lambda file: write(file, columns))


def _columns_for(suffix: str, table: FileTable, read: ReadColumns) -> Columns:
    """Return the columns of ``table`` with the types that they get in a format: those of the file, or as read."""
    if suffix == ".parquet" and table.load_types is not None:
        return dict(zip(table.names, table.load_types().columns, strict=True))
    as_written = read.columns
    if table.decimal == ",":  # reading makes points of them
        as_written = table.load(table.names, (), None)
    if suffix == ".parquet" and table.decimal == ",":
        return {name: _as_numbers(read, name, as_written[name]) for name in table.names}
    if suffix in ARRAYS and table.classes:
        return {CLASSES: [*table.classes], **as_written}
    if suffix in WRITERS:
        return as_written
    return {name: without_decimals(values) for name, values in as_written.items()}


def _as_numbers(read: ReadColumns, name: str, as_written: Column) -> Column:
    """Return a column of a file with decimal commas as numbers, if all its values are numbers and one has a comma."""
    if not read.columns[name].equals(as_written):
        with suppress(PredictionsError):
            return torch.from_numpy(read.numbers(name))
    return as_written


def check_copy(table: FileTable, out: Path) -> None:
    """Raise a `PredictionsError` if the suffix of ``out`` names a format in which ``table`` cannot be written."""
    has_arrays = table.path.suffix.lower() in ARRAYS
    suffix = out.suffix.lower()
    is_written = suffix not in OTHER_FORMATS or (has_arrays and suffix in WRITERS)
    if not is_written:
        raise PredictionsError(
            out, Rule("ends_as_arrays" if has_arrays else "ends_as_text")
        )


def _write_arrays(file: BinaryIO, columns: Columns, *, is_torch: bool = False) -> None:
    arrays = {name: _array(values) for name, values in columns.items()}
    if is_torch:
        saved: dict[str, Any] = {}
        for name, array in arrays.items():
            is_text = array.dtype.kind == "U"  # of which there are no tensors
            saved[name] = array.tolist() if is_text else torch.from_numpy(array)
        torch.save(saved, file)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)


def _array(values: Column) -> "np.ndarray[Any, np.dtype[Any]]":
    """Return a column as an array, with NaN for missing numbers and "" for missing texts."""
    import pyarrow

    if isinstance(values, Tensor):
        return values.numpy()
    if isinstance(values, np.ndarray):
        return values
    column = values if isinstance(values, pyarrow.Array) else pyarrow.array(values)
    if pyarrow.types.is_string(column.type):
        return np.array(column.fill_null("").to_pylist())
    return np.array(column.to_numpy(zero_copy_only=False))


def write_parquet(file: BinaryIO, columns: Columns) -> None:
    """Write columns as a parquet file, with their types."""
    import pyarrow
    from pyarrow import parquet

    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        arrays[name] = values
        if isinstance(values, Tensor):
            plain = values.numpy() if values.ndim == 1 else values.tolist()
            arrays[name] = pyarrow.array(plain, from_pandas=True)
    parquet.write_table(pyarrow.table(arrays), file)


def write_text(
    file: BinaryIO,
    columns: Columns,
    *,
    path: Path,
    delimiter: str = ",",
    decimal: str = ".",
    has_names: bool = True,
) -> None:
    """Write columns as delimited text that `open_table` reads as the same names and texts.

    Raises:
        PredictionsError: If `open_table` would read other names or texts. It names ``path``, the row and the column.
    """
    texts: dict[str, list[str]] = {}
    for name, values in columns.items():
        plain = values.tolist() if hasattr(values, "tolist") else values
        texts[name] = [_cell(value, decimal) for value in plain]
    rows = [*zip(*texts.values(), strict=True)]  # columns turned into rows
    names = unnamed(len(texts))
    if has_names:
        names = [*texts]
        header = [
            "" if name == f"Unnamed: {place}" else name for place, name in enumerate(names)
        ]
        rows.insert(0, tuple(header))
    cells = dict(zip(names, texts.values(), strict=True))
    # In quotes, no cell begins a comment or ends a line.
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        text = StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n")
        writer.writerows(rows)
        content = text.getvalue().encode()
        fault = _fault(path, cells, content, decimal)
        if fault is None:
            file.write(content)
            return
    assert fault is not None
    raise fault


def _cell(value: Any, decimal: str) -> str:
    if value is None or value != value:
        return ""
    return repr(value).replace(".", decimal) if isinstance(value, float) else str(value)


def _fault(
    path: Path, texts: Mapping[str, list[str]], content: bytes, decimal: str
) -> PredictionsError | None:
    """Return an error about the first name or cell of ``texts`` that is read differently from ``content``, or None."""
    import pyarrow

    try:
        table = open_text(path, content)
        columns = table.load(table.names, (), None)
    except (ValueError, csv.Error) as error:
        return PredictionsError(path, Rule("text_to_read_again", error=error))
    if ([*table.names], table.decimal) != ([*texts], decimal):
        return PredictionsError(
            path,
            Rule(
                "columns_to_read_again",
                names=[*texts],
                read=table.names,
                decimal=table.decimal,
            ),
        )
    for name, cells in texts.items():
        if columns[name].equals(pyarrow.array(cells, pyarrow.string())):
            continue
        pairs = enumerate(zip_longest(cells, columns[name].to_pylist()), start=1)
        row, cell, read = next((row, *pair) for row, pair in pairs if pair[0] != pair[1])
        return PredictionsError(
            path, Rule("value_to_read_again", cell=cell, read=read), row=row, column=name
        )
    return None


WRITERS: Mapping[str, Callable[[BinaryIO, Columns], None]] = {
    ".parquet": write_parquet,
    ".npz": _write_arrays,
    ".pt": partial(_write_arrays, is_torch=True),
}
"""The function that writes each format, by suffix. Files with other suffixes are text."""


def write_trials(
    path: str | Path, table: TrialTable, trials: str | Path | None = None
) -> list[str]:
    """Write files that `read_trials` reads. No file is replaced until the new contents of all files are written.

    Args:
        path: The file to write. A csv, parquet or npz file has scores, labels and groups. For any other suffix, it is
            text in Kaldi's format: each line has the names of enrollment and test, and the score.
        table: The trials. Their groups are written as columns.
        trials: A second file, for the labels. It is required for Kaldi's format, and refused for other formats.

    Returns:
        The names of the columns that the format cannot store.

    Raises:
        PredictionsError: If the format needs columns that are missing, or cannot store a name.
    """
    path = local_path(path, "path")
    trials = None if trials is None else local_path(trials, "trials")
    for column, group in table.groups.items():
        if column in RESERVED:
            raise PredictionsError(path, Rule("no_reserved_name", name=column))
        rule = Rule("no_zero_character")
        _check_texts(path, column, group, rule, lambda text: "\0" not in text)
    columns: Columns = {name: _texts(group) for name, group in table.groups.items()}
    columns |= {
        "score": table.trials.scores,
        "label": _texts(Groups(["nontarget", "target"], table.trials.labels)),
    }
    if path.suffix.lower() in TABLES:
        if trials is not None:
            raise PredictionsError(path, Rule("no_list_of_trials"))
        write = WRITERS.get(path.suffix.lower(), partial(write_text, path=path))
        replace_file(path, lambda file: write(file, columns))
        return []
    if trials is None or trials.resolve() == path.resolve():
        raise PredictionsError(path, Rule("list_of_trials"))
    for each in (path, trials):
        if each.suffix.lower() in (*TABLES, *OTHER_FORMATS):
            raise PredictionsError(each, Rule("written_format"))
    if not {*PAIR} <= {*table.groups}:
        raise PredictionsError(
            path, Rule("needs_columns", needed=[*PAIR], columns=[*table.groups])
        )
    RowIds.of(ReadColumns(path, columns), PAIR).check_different()
    for name in PAIR:
        rule = Rule("no_white_space")
        _check_texts(
            trials,
            name,
            table.groups[name],
            rule,
            lambda text: text.split() == [text] and '"' not in text,
        )
    writers = dict[Path, Callable[[BinaryIO], None]]()
    for out, value in ((trials, "label"), (path, "score")):
        kept = {name: columns[name] for name in (*PAIR, value)}
        writers[out] = partial(
            write_text, columns=kept, path=out, delimiter=SPACE, has_names=False
        )
    replace_files(writers)
    return [name for name in table.groups if name not in PAIR]


def _texts(groups: Groups) -> Any:
    from pyarrow import array, string

    return array(groups.names, string()).take(array(groups.codes.int().numpy()))


def _check_texts(
    path: Path, column: str, group: Groups, rule: Rule, is_kept: Callable[[str], bool]
) -> None:
    for text in group.names:
        if not is_kept(text):
            raise PredictionsError(path, rule, column=column, value=text)
