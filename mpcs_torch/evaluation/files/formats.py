"""Open files as tables. Each format is one function, chosen by the content of the file; no other module opens them."""

import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import has_control, quoted
from mpcs_torch.evaluation.files.chunks import (
    LONGEST_LINE,
    PredictionsError,
    check_columns,
    lines_of,
    reading,
    rows_at_a_time,
)
from mpcs_torch.evaluation.files.delimited import TextRows, encoding_of, has_header, sniff
from mpcs_torch.evaluation.files.hdf5 import hdf5_table
from mpcs_torch.evaluation.files.records import flat_record, records_of
from mpcs_torch.evaluation.files.tables import Batch, Column, Table, column_of, in_parts, unnamed
from mpcs_torch.evaluation.files.words import CLASS_NAMES, plain
from mpcs_torch.io.npy_files import map_array, read_header
from mpcs_torch.io.untrusted_files import (
    FREE_BYTES,
    MAX_DATA_BYTES,
    MAX_EXPANSION,
    FileRuleError,
    check_member,
    check_regular,
    check_whole_tensors,
    load_tensors,
)

START_BYTES = 2**16
"""The most of a file that is read to find out its format and dialect."""
MAX_CODE, SURROGATES = 0x10FFFF, np.arange(0xD800, 0xE000)
"""Of Unicode: the last character, and what are no characters."""
ROWS = 2**13
"""The number of rows that are read at a time where each may be long."""
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


class _Limited(io.RawIOBase):
    """The first bytes of a stream; more of them are an error, or left out."""

    def __init__(self, stream: Any, most: int, *, is_error: bool) -> None:
        self._stream, self._left, self._is_error = stream, most, is_error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer) if self._is_error else min(len(buffer), self._left))
        self._left -= len(data)
        if self._left < 0:
            raise FileRuleError(f"must expand to at most {MAX_EXPANSION} times its size or {FREE_BYTES} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _open_text(path: Path, compression: str, *, is_whole: bool) -> BinaryIO:
    """Open the bytes of a text file, unpacked; of one that may grow, up to its last line with an end."""
    if compression:
        import pyarrow

        stream, most = pyarrow.input_stream(str(path), compression=compression), MAX_EXPANSION * path.stat().st_size
        return cast("BinaryIO", io.BufferedReader(_Limited(stream, max(FREE_BYTES, most), is_error=True)))
    file = path.open("rb")
    if is_whole:
        return file
    start, end = file.seek(0, io.SEEK_END), 0
    while start and not end:
        most, start = start, file.seek(max(0, start - START_BYTES))
        end = file.read(most - start).rfind(b"\n") + 1
    file.seek(0)
    return cast("BinaryIO", io.BufferedReader(_Limited(file, start + end, is_error=False)))


def _text_table(path: Path, *, is_whole: bool) -> Table:
    """Open text: JSON if it begins as such, else rows with a delimiter between fields."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    compression = next((name for mark, name in PACKED.items() if start.startswith(mark)), "")
    is_wide = encoding_of(start).startswith("utf-16")  # where lines do not end with a byte
    opened = partial(_open_text, path, compression, is_whole=is_whole or is_wide)
    with opened() as file:
        start = more = file.read(START_BYTES)
        while len(more) == START_BYTES and start.count(b"\n") < 2 and len(start) < LONGEST_LINE:  # of many columns
            start += (more := file.read(START_BYTES))
    text = start.decode(encoding_of(start), "ignore").lstrip()
    if text[:1] in ("{", "[") and path.suffix.lower() not in (".csv", ".tsv"):
        return _json_table(path, opened, compression)
    dialect = sniff(path, start, is_whole=len(more) < START_BYTES)
    words = ", ".join([*([compression] if compression else []), *dialect.in_words()])
    return Table(
        path,
        dialect.names,
        TextRows(path, dialect, opened).batches,
        has_names=dialect.has_names,
        dialect=words,
        delimiter=dialect.delimiter,
        decimal=dialect.decimal,
    )


def _json_table(path: Path, opened: Callable[[], BinaryIO], compression: str) -> Table:
    """Open JSON lines, a JSON array of records, or an object of columns or of records by id."""

    def records() -> Iterator[Any]:
        with io.TextIOWrapper(opened(), encoding="utf-8-sig") as file:
            lines = (line for line in lines_of(file, path) if line.strip())
            first, second = next(lines, ""), next(lines, None)
            try:
                parsed = json.loads(first)
            except ValueError:
                parsed = None
            if parsed is None or second is None or not isinstance(parsed, (dict, list)):
                if (path.stat().st_size) > MAX_DATA_BYTES:
                    raise FileRuleError(f"must have at most {MAX_DATA_BYTES} bytes, or a record on each line")
                yield from records_of(json.loads("".join([first, second or "", *lines])))
                return
            for row, line in enumerate(chain([first, second], lines), start=1):
                with reading(path, row):
                    yield json.loads(line)

    table = _nested_table(path, records)
    if not table.names:
        raise PredictionsError(path, "must contain records with names of columns")
    return replace(table, dialect=compression)


def _records_table(path: Path, names: Sequence[str], records: Callable[[], Iterator[Any]], **about: Any) -> Table:
    """Return a table of records, which are read anew each time."""

    def read(wanted: Sequence[str], _: Collection[str], __: range | None) -> Iterator[Batch]:
        rows, first = records(), 1
        while some := list(islice(rows, ROWS)):
            yield Batch(first, {name: column_of([record.get(name) for record in some]) for name in wanted})
            first += len(some)

    return Table(path, names, read, **about)


def _parquet_table(path: Path) -> Table:
    """Open parquet; parts of its rows can be read."""
    from pyarrow import OSFile, parquet

    file = parquet.ParquetFile(OSFile(str(path)), pre_buffer=False)  # a path may be taken for an address
    names = list(file.schema_arrow.names)
    if any(_is_deep(kind) for kind in file.schema_arrow.types):
        return _nested_table(path, lambda: (row for some in file.iter_batches(ROWS) for row in some.to_pylist()))

    def read(wanted: Sequence[str], _: Collection[str], part: range | None) -> Iterator[Batch]:
        part = range(file.metadata.num_rows) if part is None else part
        groups, start, end = list[int](), 0, 0
        for number in range(file.num_row_groups):
            begin, end = end, end + file.metadata.row_group(number).num_rows
            if begin < part.stop and end > part.start:
                start = start if groups else begin
                groups.append(number)
        for some in file.iter_batches(rows_at_a_time(len(wanted)), row_groups=groups, columns=wanted):
            low, high = max(start, part.start), min(start + len(some), part.stop)
            if low < high:
                kept = some.slice(low - start, high - low)
                yield Batch(low + 1, {name: _plain(kept.column(name)) for name in wanted})
            start += len(some)

    whole = partial(file.iter_batches, rows_at_a_time(len(names)))
    return Table(path, names, read, rows=int(file.metadata.num_rows), records=whole)


def _nested_table(path: Path, records: Callable[[], Iterator[Any]]) -> Table:
    """Return a table of records with nested values, which become columns as those of JSON do."""
    names = dict.fromkeys(name for record in islice(records(), ROWS) for name in flat_record(record))
    return _records_table(path, [*names], lambda: map(flat_record, records()))


def _is_deep(kind: Any) -> bool:
    """Return whether a type of arrow is nested, and not a list of numbers."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return types.is_nested(kind) and not (is_list and types.is_primitive(kind.value_type))


def _arrow_table(path: Path) -> Table:
    """Open an arrow file (feather), or a stream of arrow."""
    from pyarrow import ipc, memory_map

    def batches() -> Any:
        with memory_map(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            opened = ipc.open_file(file) if is_file else ipc.open_stream(file)
            yield opened.schema.names
            yield from (opened.get_batch(place) for place in range(opened.num_record_batches)) if is_file else opened

    def read(wanted: Sequence[str], _: Collection[str], __: range | None) -> Iterator[Batch]:
        first = 1
        for some in islice(batches(), 1, None):
            yield from in_parts({name: _plain(some.column(name)) for name in wanted}, ROWS, first)
            first += len(some)

    return Table(path, next(batches()), read)


def _plain(column: Any) -> Column:
    """Return a column of arrow as numbers, text, or a tensor of lists of numbers of one length."""
    from pyarrow import string, types

    column.validate(full=True)  # of texts, that they are UTF-8
    kind = column.type
    if types.is_dictionary(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind):
        return column
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        values, rows = column.flatten(), len(column)
        lengths = {len(row) if row is not None else -1 for row in column} if rows else set()
        if len(lengths) == 1 and values.type != string() and not values.null_count and -1 not in lengths:
            return torch.from_numpy(np.array(values.to_numpy(zero_copy_only=False)).reshape(rows, -1))
        return column_of(column.to_pylist())
    if types.is_nested(kind) or types.is_boolean(kind):
        return column_of(column.to_pylist())
    return column.cast(string())


def _xlsx_table(path: Path) -> Table:
    """Open the first sheet of an xlsx file; formulas are read as the values that they last had."""
    from openpyxl import load_workbook

    def rows() -> Iterator[list[Any]]:
        with path.open("rb") as file:
            sheet = load_workbook(file, read_only=True, data_only=True).worksheets[0]
            sheet.reset_dimensions()
            yield from (list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row))

    first = list(islice(rows(), 51))
    if not first:
        raise PredictionsError(path, "has no rows: the first sheet is empty")
    has_names = has_header([["" if cell is None else str(cell) for cell in row] for row in first], ",")
    cells = [f"Unnamed: {place}" if cell is None else str(cell).strip() for place, cell in enumerate(first[0])]
    names = cells if has_names else unnamed(max(map(len, first)))
    about = {"has_names": has_names, "dialect": "" if has_names else "no header"}

    def records() -> Iterator[Any]:
        return (dict(zip(names, row, strict=False)) for row in islice(rows(), int(has_names), None))

    return _records_table(path, names, records, **about)


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
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
        headers, other = {}, list[str]()
        for name, member in members.items():
            with archive.open(member) as stream:
                try:
                    header = read_header(stream, max_characters=10_000)  # a path has at most 4096
                except FileRuleError:
                    if len(members) == 1:
                        raise
                    other.append(name)
                    continue
                if header.is_fortran and len(header.shape) > 1:
                    raise PredictionsError(path, f"{name} must be stored row by row (numpy.ascontiguousarray)")
                header.check_whole(member.file_size)
                headers[name] = header
    shapes = {name: header.shape for name, header in headers.items()}

    def open_member(name: str) -> Callable[[int, int], Any]:
        stream = zipfile.ZipFile(path).open(members[name])  # noqa: SIM115  # read on as rows are asked for
        header = headers[name]
        size = header.dtype.itemsize * math.prod(header.shape[1:])

        def rows(start: int, stop: int) -> Any:
            stream.seek(header.start + size * start)  # which reads what is between
            data = np.frombuffer(stream.read(size * (stop - start)), header.dtype)
            return data.reshape(stop - start, *header.shape[1:])

        return rows

    return _arrays_table(path, shapes, open_member, other)


def _npy_table(path: Path) -> Table:
    """Open npy: an array, which has no name."""
    mapped = map_array(path)
    table = _arrays_table(path, {"column 1": mapped.shape}, lambda _: lambda start, stop: mapped[start:stop])
    return replace(table, has_names=False)


def _torch_table(path: Path) -> Table:
    """Open a file of `torch.save`: a dictionary of tensors and lists, or one tensor."""
    saved = load_tensors(path, mmap=True)
    saved = {"column 1": saved} if isinstance(saved, Tensor) else saved
    if not isinstance(saved, dict) or not any(isinstance(value, Tensor) for value in saved.values()):
        raise PredictionsError(path, "must contain a dictionary with tensors, such as preds and target")
    columns = {str(name): value for name, value in saved.items() if isinstance(value, (Tensor, list))}
    columns = {name: value if isinstance(value, Tensor) else column_of(value) for name, value in columns.items()}
    check_whole_tensors(columns.values())
    shapes = {
        name: tuple(value.shape) if isinstance(value, Tensor) else (len(value),) for name, value in columns.items()
    }
    return _arrays_table(path, shapes, lambda name: lambda start, stop: columns[name][start:stop])


def _arrays_table(
    path: Path, shapes: Mapping[str, tuple[int, ...]], open_array: Callable[[str], Any], other: Sequence[str] = ()
) -> Table:
    """Return a table of arrays that have as many rows as the largest; the others are named in its dialect."""
    sizes = {name: math.prod(shape) for name, shape in shapes.items() if shape and len(shape) <= 2}
    if not sizes:
        raise PredictionsError(path, f"must contain an array (N,) or (N, C), but has {quoted(dict(shapes))}")
    rows = shapes[max(sizes, key=lambda name: sizes[name])][0]
    names = [name for name in sizes if shapes[name][0] == rows]
    other = [*other, *(name for name in shapes if name not in names)]
    width = max((shapes[name][1] for name in names if len(shapes[name]) == 2), default=1)
    called = next((name for name in other if plain(name) in CLASS_NAMES and shapes.get(name) == (width,)), None)
    classes = [] if called is None else _array_column(open_array(called)(0, width), is_text=True).tolist()
    classes = classes if len({*classes}) == width and all(isinstance(name, str) for name in classes) else []
    is_wide = width > 1
    flat = [name for name in names if shapes[name][1:] == (1,)] if is_wide else []  # labels (N, 1) beside scores (N, C)

    def read(wanted: Sequence[str], numbers: Collection[str], part: range | None) -> Iterator[Batch]:
        arrays, part = {name: open_array(name) for name in wanted}, range(rows) if part is None else part
        step = min(ROWS, rows_at_a_time(max(math.prod(shapes[name][1:]) for name in wanted)))
        for start in range(part.start, part.stop, step):
            some = {name: array(start, min(start + step, part.stop)) for name, array in arrays.items()}
            some = {name: each[:, 0] if name in flat else each for name, each in some.items()}
            yield Batch(start + 1, {name: _array_column(each, name not in numbers) for name, each in some.items()})

    unread = [name for name in other if name != called]
    words = f"arrays of another shape or kind: {', '.join(unread)}" if unread else ""
    return Table(path, names, read, rows=rows, dialect=words, counts_from_0=True, classes=classes)


def _array_column(values: Any, is_text: bool) -> Column:
    """Return an array of numbers (n, k) as a tensor; one of numbers or texts (n,) as it is, or for text by arrow."""
    if isinstance(values, Tensor) and values.ndim == 2:
        return values
    if isinstance(values, Tensor):
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    if isinstance(values, np.ndarray):
        values = values.view(np.uint8) if values.dtype.kind == "b" else values  # a damaged bool may be neither
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        codes = np.ascontiguousarray(values).view(np.uint32) if values.dtype.kind == "U" and values.size else None
        if codes is not None and ((codes > MAX_CODE) | np.isin(codes, SURROGATES)).any():
            raise FileRuleError("must contain texts of Unicode characters")
    if isinstance(values, np.ndarray) and values.ndim == 2:
        unsigned = np.dtype(np.float64 if values.dtype == np.uint64 else np.int64)  # torch barely supports it
        return torch.from_numpy(np.array(values, dtype=unsigned if values.dtype.kind == "u" else values.dtype))
    if is_text and isinstance(values, np.ndarray):
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
