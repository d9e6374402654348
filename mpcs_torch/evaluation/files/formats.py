"""Open files as tables. Each format is one function, chosen by the content of the file; no other module opens them."""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import has_control, quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns, reading
from mpcs_torch.evaluation.files.delimited import encoding_of, has_header, read_text, sniff
from mpcs_torch.evaluation.files.hdf5 import hdf5_table
from mpcs_torch.evaluation.files.records import flat_record, records_of
from mpcs_torch.evaluation.files.tables import Column, Table, column_of, unnamed
from mpcs_torch.evaluation.files.words import CLASS_NAMES, plain
from mpcs_torch.io.untrusted_files import check_member, check_regular, check_whole_tensors, load_tensors

START_BYTES = 2**16
"""The part of a file that decides its format and dialect, extended to the end of the next line."""
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""Compressions of text, by the first bytes."""


def open_table(path: Path, *, is_whole: bool = True) -> Table:
    """Open a file as a table: text with any delimiter, JSON, parquet, arrow, npz, npy, pt, xlsx or HDF5.

    If a text file may grow (not ``is_whole``), a last line without its end is left out.

    Raises:
        PredictionsError: If it cannot be read, or its columns have no names that differ.
        FileNotFoundError: If there is no such file.
    """
    with reading(path):
        check_regular(path)
        with path.open("rb") as file:
            start = file.read(8)
        text = partial(_text_table, is_whole=is_whole)
        opened = next((opened for mark, opened in FORMATS.items() if start.startswith(mark)), text)
        table = (_torch_table if path.suffix.lower() in (".pt", ".pth") else opened)(path)
        check_columns(path, len(table.names))
        bad = next((name for name in table.names if has_control(name)), None)
        if bad is not None:
            raise PredictionsError(path, f"names of columns must not have control characters, but one is {quoted(bad)}")
        repeated = sorted(name for name, count in Counter(table.names).items() if count > 1)
        if repeated:
            raise PredictionsError(path, f"columns must have different names, but {quoted(repeated)} repeat")
        return table


def _open_text(path: Path, compression: str, *, is_whole: bool) -> BinaryIO:
    """Open the bytes of a text file, unpacked; of one that may grow, up to its last line with an end."""
    if compression:
        import pyarrow

        return io.BufferedReader(cast("Any", pyarrow.input_stream(str(path), compression=compression)))
    if is_whole:
        return path.open("rb")
    content = path.read_bytes()
    return io.BytesIO(content[: content.rfind(b"\n") + 1])


def _text_table(path: Path, *, is_whole: bool) -> Table:
    """Open text: JSON if it begins as such, else rows with a delimiter between fields."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    compression = next((name for mark, name in PACKED.items() if start.startswith(mark)), "")
    is_wide = encoding_of(start).startswith("utf-16")  # where lines do not end with a byte
    opened = partial(_open_text, path, compression, is_whole=is_whole or is_wide)
    with opened() as file:
        start = file.read(START_BYTES) + file.readline() + file.readline()
        is_all = not file.read(1)
    text = start.decode(encoding_of(start), "ignore").lstrip()
    if text[:1] in ("{", "[") and path.suffix.lower() not in (".csv", ".tsv"):
        with opened() as file:
            return _json_table(path, file.read().decode("utf-8-sig"), compression)
    dialect = sniff(path, start, is_whole=is_all)
    words = ", ".join([*([compression] if compression else []), *dialect.in_words()])
    return Table(
        path,
        dialect.names,
        partial(read_text, path, dialect, opened),
        has_names=dialect.has_names,
        dialect=words,
        delimiter=dialect.delimiter,
        decimal=dialect.decimal,
    )


def _json_table(path: Path, text: str, compression: str) -> Table:
    """Open JSON lines, a JSON array of records, or an object of columns or of records by id."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and _is_json(lines[0]):
        records = []
        for row, line in enumerate(lines, start=1):
            with reading(path, row):
                records.append(json.loads(line))
    else:
        records = records_of(json.loads(text))
    table = _nested_table(path, records)
    if not table.names:
        raise PredictionsError(path, "must contain records with names of columns")
    return replace(table, dialect=compression)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _nested_table(path: Path, records: Sequence[Any]) -> Table:
    """Return a table of records with nested values, which become columns as those of JSON do."""
    flat = [flat_record(record) for record in records]
    return _records_table(path, [*dict.fromkeys(name for record in flat for name in record)], flat)


def _records_table(path: Path, names: Sequence[str], records: Sequence[Mapping[str, Any]], **about: Any) -> Table:
    """Return a table of records."""

    def load(wanted: Sequence[str], _: Collection[str], first_rows: int | None) -> dict[str, Column]:
        return {name: column_of([record.get(name) for record in records[:first_rows]]) for name in wanted}

    return Table(path, names, load, **about)


def _parquet_table(path: Path) -> Table:
    """Open parquet."""
    from pyarrow import OSFile, parquet
    from pyarrow import Table as ArrowTable

    file = parquet.ParquetFile(OSFile(str(path)), pre_buffer=False)  # a path may be taken for an address
    if any(_is_deep(kind) for kind in file.schema_arrow.types):
        return _nested_table(path, file.read().to_pylist())

    def load(wanted: Sequence[str], _: Collection[str], first_rows: int | None) -> dict[str, Column]:
        if first_rows is None:
            read = file.read(columns=wanted)
        else:
            first = next(file.iter_batches(first_rows, columns=wanted), None)
            read = ArrowTable.from_batches([first] if first else [], first.schema if first else file.schema_arrow)
        return {name: _plain(read.column(name)) for name in wanted}

    return Table(path, list(file.schema_arrow.names), load, load_types=file.read)


def _is_deep(kind: Any) -> bool:
    """Return whether a type of arrow is nested, and not a list of numbers."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return types.is_nested(kind) and not (is_list and types.is_primitive(kind.value_type))


def _arrow_table(path: Path) -> Table:
    """Open an arrow file (feather), or a stream of arrow."""
    from pyarrow import ipc, memory_map

    file = memory_map(str(path))
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    table = (ipc.open_file(file) if is_file else ipc.open_stream(file)).read_all()

    def load(wanted: Sequence[str], _: Collection[str], first_rows: int | None) -> dict[str, Column]:
        return {name: _plain(table.column(name).slice(0, first_rows)) for name in wanted}

    return Table(path, table.schema.names, load)


def _plain(chunked: Any) -> Column:
    """Return a column of arrow as numbers, text, or a tensor of lists of numbers of one length."""
    from pyarrow import compute, string, types

    kind = chunked.type.value_type if types.is_dictionary(chunked.type) else chunked.type
    column = chunked.cast(kind).combine_chunks()
    column.validate(full=True)  # of texts, that they are UTF-8
    if types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind):
        return column
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        values, lengths = column.flatten(), compute.list_value_length(column).unique().to_pylist()
        if len(lengths) == 1 and lengths[0] and types.is_primitive(kind.value_type) and not values.null_count:
            return torch.from_numpy(np.array(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1))
        return column_of(column.to_pylist())
    if types.is_nested(kind) or types.is_boolean(kind):
        return column_of(column.to_pylist())
    return column.cast(string())


def _xlsx_table(path: Path) -> Table:
    """Open the first sheet of an xlsx file; formulas are read as the values that they last had."""
    from openpyxl import load_workbook

    with path.open("rb") as file:
        sheet = load_workbook(file, read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()
        rows = [list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    if not rows:
        raise PredictionsError(path, "has no rows: the first sheet is empty")
    has_names = has_header([["" if cell is None else str(cell) for cell in row] for row in rows[:51]], ",")
    cells = [f"Unnamed: {place}" if cell is None else str(cell).strip() for place, cell in enumerate(rows[0])]
    names = cells if has_names else unnamed(max(map(len, rows)))
    records = [dict(zip(names, row, strict=False)) for row in rows[int(has_names) :]]
    return _records_table(path, names, records, has_names=has_names, dialect="" if has_names else "no header")


def _zip_table(path: Path) -> Table:
    """Open what is packed as zip: npz, xlsx, or a file of `torch.save`."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        for member in members:
            check_member(member)
    if any(member.filename.startswith("xl/") for member in members):
        return _xlsx_table(path)
    if any(member.filename.endswith("data.pkl") for member in members):
        return _torch_table(path)
    return _npz_table(path)


def _npz_table(path: Path) -> Table:
    """Open npz: arrays of numbers or texts, of which those with as many rows as the largest are columns."""
    arrays, other = dict[str, Any](), list[str]()
    with np.load(path) as file:
        for name in file.files:
            try:
                array = file[name]
            except ValueError:  # an array of objects, which only pickle reads
                if len(file.files) == 1:
                    raise
                array = None
            if isinstance(array, np.ndarray):  # the bytes of a member that is no npy file are none
                arrays[name] = array
            else:
                other.append(name)
    return _arrays_table(path, arrays, other)


def _npy_table(path: Path) -> Table:
    """Open npy: an array, which has no name."""
    return replace(_arrays_table(path, {"column 1": np.load(path, mmap_mode="r")}), has_names=False)


def _torch_table(path: Path) -> Table:
    """Open a file of `torch.save`: a dictionary of tensors and lists, or one tensor."""
    saved = load_tensors(path, mmap=True)
    saved = {"column 1": saved} if isinstance(saved, Tensor) else saved
    if not isinstance(saved, dict) or not any(isinstance(value, Tensor) for value in saved.values()):
        raise PredictionsError(path, "must contain a dictionary with tensors, such as preds and target")
    columns = {str(name): value for name, value in saved.items() if isinstance(value, (Tensor, list))}
    check_whole_tensors(columns.values())
    arrays = {name: value if isinstance(value, Tensor) else column_of(value) for name, value in columns.items()}
    return _arrays_table(path, arrays)


def _arrays_table(path: Path, arrays: Mapping[str, Any], other: Sequence[str] = ()) -> Table:
    """Return a table of arrays that have as many rows as the largest; the others are named in its dialect."""
    shapes = {name: tuple(a.shape) if hasattr(a, "shape") else (len(a),) for name, a in arrays.items()}
    sizes = {name: np.prod(shape) for name, shape in shapes.items() if len(shape) in (1, 2) and _is_plain(arrays[name])}
    if not sizes:
        raise PredictionsError(path, f"must contain an array (N,) or (N, C) of numbers, but has {quoted(shapes)}")
    rows = shapes[max(sizes, key=lambda name: sizes[name])][0]
    names = [name for name in sizes if shapes[name][0] == rows]
    other = [*other, *(name for name in shapes if name not in names)]
    width = max((shapes[name][1] for name in names if len(shapes[name]) == 2), default=1)
    called = next((name for name in other if plain(name) in CLASS_NAMES and shapes.get(name) == (width,)), None)
    classes = [] if called is None else _array_column(arrays[called], is_text=True).tolist()
    classes = classes if len({*classes}) == width and all(isinstance(name, str) for name in classes) else []
    flat = [name for name in names if shapes[name][1:] == (1,) and width > 1]  # labels (N, 1) beside scores (N, C)

    def load(wanted: Sequence[str], numbers: Collection[str], first_rows: int | None) -> dict[str, Column]:
        some = {name: arrays[name][:first_rows] for name in wanted}
        some = {name: each[:, 0] if name in flat else each for name, each in some.items()}
        return {name: _array_column(each, name not in numbers) for name, each in some.items()}

    unread = [name for name in other if name != called]
    words = f"arrays of another shape or kind: {', '.join(unread)}" if unread else ""
    return Table(path, names, load, dialect=words, counts_from_0=True, classes=classes)


def _is_plain(array: Any) -> bool:
    """Return whether an array has real numbers or texts."""
    return not isinstance(array, np.ndarray) or array.dtype.kind in "fiubU"


def _array_column(values: Any, is_text: bool) -> Column:
    """Return numbers (n, k) as a tensor; numbers (n,) as they are, or for text by arrow; and texts by arrow."""
    if isinstance(values, Tensor) and values.ndim == 2:
        return values
    if isinstance(values, Tensor):
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    if not isinstance(values, np.ndarray):
        return values
    values = values.view(np.uint8) if values.dtype.kind == "b" else values  # a damaged bool may be neither
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.ndim == 2:
        unsigned = np.dtype(np.float64 if values.dtype == np.uint64 else np.int64)  # torch barely supports it
        return torch.from_numpy(np.array(values, dtype=unsigned if values.dtype.kind == "u" else values.dtype))
    if is_text or values.dtype.kind == "U":
        import pyarrow

        return pyarrow.array(values)
    return values


FORMATS: Mapping[bytes, Callable[[Path], Table]] = {
    b"PAR1": _parquet_table,
    b"ARROW1": _arrow_table,
    b"\xff\xff\xff\xff": _arrow_table,
    b"PK": _zip_table,
    b"\x93NUMPY": _npy_table,
    b"\x89HDF": hdf5_table,
    b"\x80": _torch_table,
}
"""By the first bytes of a file; anything else is text."""
