"""Open files as tables, with one function for each format."""

import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from mpcs_torch.errors import has_control, quoted
from mpcs_torch.evaluation.files.delimited import SNIFFED_BYTES, detect_encoding, has_header, read_text, sniff
from mpcs_torch.evaluation.files.hdf5 import hdf5_table
from mpcs_torch.evaluation.files.reading import PredictionsError, reading
from mpcs_torch.evaluation.files.tables import Column, FileTable, make_column, unnamed
from mpcs_torch.evaluation.files.unpacked_columns import counted_table, message_bytes, parquet_batches
from mpcs_torch.evaluation.files.weka import HEADER as WEKA_HEADER
from mpcs_torch.evaluation.files.weka import arff_as_csv, distribution_as_csv, is_arff
from mpcs_torch.evaluation.files.words import CLASS_NAMES, plain
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.unpacking import unpack, unpacked_zip, zip_members
from mpcs_torch.io.untrusted_files import (
    MAX_COLUMNS,
    MAX_NAME,
    OBJECT_BYTES,
    VALUE_BYTES,
    FileRuleError,
    Unpacked,
    check_regular,
    check_whole_tensors,
    load_tensors,
)

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""The supported compressions of text files, by the first bytes of a file."""
LFS_POINTER = b"version https://git-lfs"
"""The beginning of the text that stands for a file which Git LFS has not yet fetched."""
ARROW_START = 8
"""The bytes of the first mark in an arrow file. After it, the file continues as an arrow stream does."""


def open_table(path: str | Path, *, is_whole: bool = True) -> FileTable:
    """Open a file as a table: text with any delimiter, JSON, parquet, arrow, npz, npy, pt, xlsx or HDF5.

    ``is_whole`` is False for a text file that is still being written: an unfinished last line is left out.

    Raises:
        PredictionsError: If the file cannot be read, or two columns have the same name.
        FileNotFoundError: If there is no such file.
    """
    path = local_path(path, "path")
    with reading(path):
        check_regular(path)
        with path.open("rb") as file:
            start = file.read(8)
        compression = next((name for mark, name in PACKED.items() if start.startswith(mark)), "")
        read = partial(_content, path, compression, is_whole=is_whole)
        text = partial(_text_table, compression=compression, read=read)
        opened = next((opened for mark, opened in FORMATS.items() if start.startswith(mark)), text)
        table = (_torch_table if path.suffix.lower() in (".pt", ".pth") else opened)(path)
        check_names(path, table.names)
        return table


def open_text(path: Path, content: bytes) -> FileTable:
    """Open text that is not yet written to ``path``, as `open_table` will open it then; see there for errors."""
    if content.startswith((*FORMATS, *PACKED)):
        raise PredictionsError(path, f"begins with {quoted(content[:4])}, as files of another format do")
    table = _text_table(path, compression="", read=lambda: content)
    check_names(path, table.names)
    return table


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise a `PredictionsError` if there are too many columns, or if a name is too long, unprintable or repeated."""
    if len(names) > MAX_COLUMNS:
        raise PredictionsError(path, f"must have at most {MAX_COLUMNS} columns, but has {len(names)}")
    if (long := max(map(len, names), default=0)) > MAX_NAME:
        problem = f"names of columns must have at most {MAX_NAME} characters, but one has {long}"
        raise PredictionsError(path, problem)
    bad = next((name for name in names if has_control(name)), None)
    if bad is not None:
        raise PredictionsError(path, f"names of columns must not have control characters, but one is {quoted(bad)}")
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise PredictionsError(path, f"columns must have different names, but {quoted(repeated)} repeat")


def _content(path: Path, compression: str, *, is_whole: bool) -> bytes:
    """Return the decompressed bytes of a text file. Unless ``is_whole``, an unfinished last line is left out."""
    if compression:
        return unpack(path, compression)
    content = path.read_bytes()
    is_wide = detect_encoding(content[:SNIFFED_BYTES]).startswith("utf-16")  # a line end has two bytes there
    return content if is_whole or is_wide else content[: content.rfind(b"\n") + 1]


def _text_table(path: Path, *, compression: str, read: Callable[[], bytes]) -> FileTable:
    content, form = read(), ""
    sniffed = content[:SNIFFED_BYTES]
    if sniffed.startswith(LFS_POINTER):
        raise PredictionsError(path, "is a pointer of Git LFS, not the file itself: git lfs pull fetches it")
    if sniffed.lstrip().startswith(b"=== Run information ==="):
        raise PredictionsError(path, "is a report of Weka, not a table: write the predictions as csv instead")
    if is_arff(sniffed) or sniffed.startswith(WEKA_HEADER):
        form, convert = ("ARFF", arff_as_csv) if is_arff(sniffed) else ("Weka", distribution_as_csv)
        content = convert(content.decode("utf-8-sig")).encode()
        sniffed, read = content[:SNIFFED_BYTES], partial(bytes, content)
    text = sniffed.decode(detect_encoding(sniffed), "ignore").lstrip()
    if text[:1] in ("{", "[") and path.suffix.lower() not in (".csv", ".tsv"):
        Unpacked(path).add(len(content) + OBJECT_BYTES * sum(map(content.count, (b",", b":", b"[", b"{"))))
        return _json_table(path, content.decode("utf-8-sig"), compression)
    dialect = sniff(path, content)
    if compression:
        Unpacked(path).add(len(content) + VALUE_BYTES * content.count(dialect.delimiter.encode()))
    words = ", ".join(filter(None, [form, compression, *dialect.unusual]))
    about: dict[str, Any] = {"delimiter": dialect.delimiter, "decimal": dialect.decimal, "dialect": words}
    return FileTable(path, dialect.names, partial(read_text, path, dialect, read), dialect.has_names, **about)


def _json_table(path: Path, text: str, compression: str) -> FileTable:
    """Open JSON: one record per line, or one value in any form that `parse_records` takes."""
    try:
        records = parse_records(json.loads(text))
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise
        records = []
        for row, line in enumerate(filter(str.strip, text.split("\n")), start=1):
            with reading(path, row):
                records.append(json.loads(line))
    table = _nested_table(path, records)
    if not table.names:
        raise PredictionsError(path, "must contain records with names of columns")
    return replace(table, dialect=compression)


def _nested_table(path: Path, records: Sequence[Any]) -> FileTable:
    """Return a table of records (dictionaries). Nested values become columns named ``outer.inner``."""
    flat = [flat_record(record) for record in records]
    return _records_table(path, [*dict.fromkeys(name for record in flat for name in record)], flat)


def _records_table(path: Path, names: Sequence[str], records: Sequence[Mapping[str, Any]], **about: Any) -> FileTable:
    """Return a table of ``records``, which map column names to values. ``about`` has other fields of `FileTable`."""

    def load(wanted: Sequence[str], _: object, rows: int | None) -> dict[str, Column]:
        first = records[:rows]
        Unpacked(path).add(VALUE_BYTES * len(wanted) * len(first))  # a record may lack most of the columns
        return {name: make_column([record.get(name) for record in first]) for name in wanted}

    return FileTable(path, names, load, **about)


def _parquet_table(path: Path) -> FileTable:
    from pyarrow import OSFile, parquet

    def opened(**options: Any) -> Any:  # pyarrow may read a path as a URL
        return parquet.ParquetFile(OSFile(str(path)), pre_buffer=False, **options)

    file = opened()
    leaves = [file.schema.column(place) for place in range(len(file.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    encoded = opened(metadata=file.metadata, read_dictionary=texts)
    batches = partial(parquet_batches, path, file, encoded)
    return _typed_table(path, file.schema_arrow, batches, load_types=file.read)


def _arrow_table(path: Path) -> FileTable:
    from pyarrow import ipc, memory_map

    file = memory_map(str(path))
    start = ARROW_START if file.read(6) == b"ARROW1" else 0
    file.seek(start)
    unpacked = Unpacked(path)
    for message in ipc.MessageReader.open_stream(file):
        unpacked.add(message_bytes(message))
    file.seek(start)
    table = ipc.open_stream(file).read_all()
    table.validate(full=True)  # wrong places of texts would kill the process
    return _typed_table(path, table.schema, lambda names, rows: table.slice(0, rows).select(names).to_batches())


def _typed_table(
    path: Path, schema: Any, batches: Callable[[Sequence[str], int | None], Iterable[Any]], **about: Any
) -> FileTable:
    """Return a table with the columns of the Arrow ``schema``; ``batches`` yields parts of given columns."""
    from pyarrow import types

    if any(types.is_nested(kind) and not _is_list(kind) for kind in schema.types):
        return _nested_table(path, counted_table(path, schema, batches(schema.names, None), None).to_pylist())

    def load(wanted: Sequence[str], _: object, rows: int | None) -> dict[str, Column]:
        table = counted_table(path, schema, batches(wanted, rows), rows)
        return {name: _plain(table.column(name)) for name in wanted}

    return FileTable(path, schema.names, load, **about)


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and types.is_primitive(kind.value_type))


def _plain(chunked: Any) -> Column:
    """Convert an Arrow column to numbers, texts or lists; lists of numbers of equal length become a tensor (n, k)."""
    from pyarrow import compute, string, types

    kind = chunked.type.value_type if types.is_dictionary(chunked.type) else chunked.type
    column = chunked.cast(kind).combine_chunks()
    column.validate(full=True)  # this also checks that texts are UTF-8
    if types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind):
        return column
    if _is_list(kind):
        values, lengths = column.flatten(), compute.list_value_length(column).unique().to_pylist()
        if len(lengths) == 1 and lengths[0] and not values.null_count:
            return torch.from_numpy(np.array(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1))
    return make_column(column.to_pylist()) if _is_list(kind) else column.cast(string())


def _xlsx_table(path: Path) -> FileTable:
    """Open the first sheet of an xlsx file; a formula is read as its last saved value."""
    from openpyxl import load_workbook

    rows, unpacked = list[Sequence[Any]](), Unpacked(path)
    sheet = load_workbook(unpacked_zip(path), read_only=True, data_only=True).worksheets[0]
    sheet.reset_dimensions()  # the declared ones may be wrong
    for row in sheet.iter_rows(values_only=True):
        filled = [cell for cell in row if cell is not None]
        unpacked.add(OBJECT_BYTES * (1 + len(filled)) + VALUE_BYTES * len(row))
        unpacked.add(sum(len(cell) for cell in filled if isinstance(cell, str)))  # cells may share one long text
        if filled:
            rows.append(row)
    if not rows:
        raise PredictionsError(path, "has no rows: the first sheet is empty")
    has_names = has_header([["" if cell is None else str(cell) for cell in row] for row in rows[:51]], ",")
    cells = [f"Unnamed: {place}" if cell is None else str(cell).strip() for place, cell in enumerate(rows[0])]
    names = cells if has_names else unnamed(max(map(len, rows)))
    records = [dict(zip(names, row, strict=False)) for row in rows[int(has_names) :]]
    return _records_table(path, names, records, has_names=has_names, dialect="" if has_names else "no header")


def _zip_table(path: Path) -> FileTable:
    names = [member.filename for member in zip_members(path)]
    if any(name.startswith("xl/") for name in names):
        return _xlsx_table(path)
    if any(name.endswith("data.pkl") for name in names):
        return _torch_table(path)
    return _npz_table(path)


def _npz_table(path: Path) -> FileTable:
    arrays, other = dict[str, Any](), list[str]()
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        for member in members:
            name = member.filename.removesuffix(".npy")
            try:
                arrays[name] = _member_array(archive, member)
            except ValueError:  # no array, or an array of Python objects, which would need pickle
                if len(members) == 1:
                    raise
                other.append(name)
    return _arrays_table(path, arrays, other)


def _member_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Read an array in a zip archive; refuse one whose header declares more values than it has, before it is made."""
    with archive.open(member) as file:
        header = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = header(file)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise FileRuleError(f"{quoted(member.filename)} must have all values of its shape {quoted(shape)}")
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)


def _npy_table(path: Path) -> FileTable:
    return replace(_arrays_table(path, {"column 1": np.load(path, mmap_mode="r")}), has_names=False)


def _torch_table(path: Path) -> FileTable:
    saved = load_tensors(path, mmap=True)
    saved = {"column 1": saved} if isinstance(saved, Tensor) else saved
    if not isinstance(saved, dict) or not any(isinstance(value, Tensor) for value in saved.values()):
        raise PredictionsError(path, "must contain a dictionary with tensors, such as preds and target")
    _count_values(saved, Unpacked(path))
    columns = {str(name): value for name, value in saved.items() if isinstance(value, (Tensor, list))}
    check_whole_tensors(columns.values())
    arrays = {name: value if isinstance(value, Tensor) else make_column(value) for name, value in columns.items()}
    return _arrays_table(path, arrays)


def _count_values(content: Any, unpacked: Unpacked) -> None:
    """Count the values in nested containers: a short pickle can refer to one list many times, and this one to others.

    Containers and texts are counted as often as they are referred to, because columns hold copies of them.
    """
    remaining = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict | list | tuple | set | frozenset):
            unpacked.add(OBJECT_BYTES * (1 + len(value)))
            inner = value.values() if isinstance(value, dict) else value
            remaining += [each for each in inner if not isinstance(each, int | float)]
        elif isinstance(value, str | bytes):
            unpacked.add(len(value))
        elif isinstance(value, Tensor) and value.layout == torch.strided:
            unpacked.add(min(value.numel() * value.element_size(), value.untyped_storage().nbytes()))


def _arrays_table(path: Path, arrays: Mapping[str, Any], other: Sequence[str] = ()) -> FileTable:
    """Return a table of the arrays that have as many rows as the largest one. Its ``dialect`` names the others."""
    shapes = {name: tuple(a.shape) if hasattr(a, "shape") else (len(a),) for name, a in arrays.items()}
    plain_arrays = [name for name, a in arrays.items() if not isinstance(a, np.ndarray) or a.dtype.kind in "fiubU"]
    sizes = {name: np.prod(shapes[name]) for name in plain_arrays if len(shapes[name]) in (1, 2)}
    if not sizes:
        raise PredictionsError(path, f"must contain an array (N,) or (N, C) of numbers, but has {quoted(shapes)}")
    rows = shapes[max(sizes, key=lambda name: sizes[name])][0]
    names = [name for name in sizes if shapes[name][0] == rows]
    other = [*other, *(name for name in shapes if name not in sizes or shapes[name][0] != rows)]
    width = max((shapes[name][1] for name in names if len(shapes[name]) == 2), default=1)
    of_names = ((width,), (max(width, 2),))  # a single probability in each row is that of one of two classes
    called = next((name for name in other if plain(name) in CLASS_NAMES and shapes.get(name) in of_names), None)
    classes = [] if called is None else _array_column(arrays[called]).tolist()
    classes = classes if len({*classes}) == len(classes) and all(isinstance(name, str) for name in classes) else []
    flat = {name for name in names if shapes[name][1:] == (1,) and width > 1}  # labels (N, 1) beside scores (N, C)

    def load(wanted: Sequence[str], _: object, number: int | None) -> dict[str, Column]:
        columns, unpacked = dict[str, Column](), Unpacked(path)
        for name in wanted:
            array = arrays[name][:number]
            if isinstance(array, np.ndarray | Tensor):
                unpacked.add(math.prod(max(1, size) for size in array.shape) * _value_bytes(array.dtype))
            columns[name] = _array_column(array[:, 0] if name in flat else array)
        return columns

    unread = [name for name in other if name != called]
    words = f"arrays of another shape or kind: {', '.join(unread)}" if unread else ""
    return FileTable(path, names, load, dialect=words, counts_from_0=True, classes=classes)


def _value_bytes(dtype: Any) -> int:
    """Return the bytes of a value of type ``dtype`` in a column: floats stay as they are, and integers get wider."""
    return int(dtype.itemsize) if "float" in str(dtype) else max(VALUE_BYTES, dtype.itemsize)


def _array_column(values: Any) -> Column:
    """Convert numbers (n, k) to a tensor, and numbers or texts (n,) to an arrow array."""
    if isinstance(values, Tensor) and values.ndim == 2:
        return values
    if isinstance(values, Tensor):
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    if not isinstance(values, np.ndarray):
        return values
    values = values.view(np.uint8) if values.dtype.kind == "b" else values  # damaged files may have bools above 1
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.ndim == 2:
        unsigned = np.dtype(np.float64 if values.dtype == np.uint64 else np.int64)  # torch lacks unsigned types
        return torch.from_numpy(np.array(values, dtype=unsigned if values.dtype.kind == "u" else values.dtype))
    import pyarrow

    return pyarrow.array(values.astype(np.float32) if values.dtype == np.float16 else values)


FORMATS: Mapping[bytes, Callable[[Path], FileTable]] = {
    b"PAR1": _parquet_table,
    b"ARROW1": _arrow_table,
    b"\xff\xff\xff\xff": _arrow_table,
    b"PK\x03\x04": _zip_table,
    b"PK\x05\x06": _zip_table,  # without members
    b"\x93NUMPY": _npy_table,
    b"\x89HDF": hdf5_table,
    b"\x80": _torch_table,
}
"""The function that opens each format, by the first bytes of the file. Files with other first bytes are text."""


def parse_records(value: Any) -> list[Any]:
    """Return the records in a JSON value: a list of records, or an object with a list per column or a record per id."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and value:
        if all(isinstance(each, list) for each in value.values()) and len({*map(len, value.values())}) == 1:
            return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
        if all(isinstance(each, dict) for each in value.values()):
            rows = next(iter(value.values())).keys()
            if all(map(str.isdecimal, rows)) and all(each.keys() == rows for each in value.values()):  # as in pandas
                return [{name: each[row] for name, each in value.items()} for row in rows]
            return [{"id": name, **record} for name, record in value.items()]
        if {"columns", "data"} <= {*value}:  # orient="split" of pandas
            return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
        inner = [each for each in value.values() if _are(each, (dict, list))]
        return inner[0] if len(inner) == 1 else [value]
    raise FileRuleError("must contain records, or a list for each column")


def flat_record(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary of values by column; nested values get the name ``outer.inner``.

    A list of labels with scores, such as ``[{"label": "cat", "score": 0.9}]``, becomes one column for each label.
    """
    if isinstance(record, list):
        by_label = _by_label(record)
        return by_label if by_label is not None else {"column 1": record}
    if not isinstance(record, Mapping):
        return {"column 1": record}
    flat = dict[str, Any]()
    texts = [name for name, value in record.items() if _are(value, (str,))]
    scores = [name for name, value in record.items() if _are(value, (int, float))]
    if len(texts) == len(scores) == 1 and len(labels := record[texts[0]]) == len(record[scores[0]]) == len({*labels}):
        by_label = dict(zip(labels, record[scores[0]], strict=True))
        record = {**{name: value for name, value in record.items() if name != texts[0]}, scores[0]: by_label}
    for name, value in record.items():
        inner = _by_label(value) if isinstance(value, list) else value
        if isinstance(inner, Mapping):
            flat |= {f"{name}.{key}": each for key, each in inner.items()}
        else:
            flat[name] = _unwrapped(value)
    return flat


def _unwrapped(value: Any) -> Any:
    """Return the only item of a list of one, and the numbers of pairs of a log likelihood and whether it is greedy."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | int | float):
        return value[0]
    is_pair = [isinstance(each, list) and [*map(type, each)] == [float, bool] for each in _items(value)]
    return [number for number, _ in value] if is_pair and all(is_pair) else value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _are(value: Any, kinds: Sequence[type]) -> bool:
    """Return whether ``value`` is a list with at least one item, and all items have a type in ``kinds``."""
    return isinstance(value, list) and bool(value) and all(type(each) in kinds for each in value)


def _by_label(values: Sequence[Any]) -> dict[str, Any] | None:
    """Map the only text in each record to its only number. Return None for other records, or if a text repeats."""
    pairs = dict[str, Any]()
    for value in values:
        texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, Mapping) else []
        numbers = [each for each in value.values() if type(each) in (int, float)] if texts else []
        if len(texts) != 1 or len(numbers) != 1 or texts[0] in pairs:
            return None
        pairs[texts[0]] = numbers[0]
    return pairs or None
