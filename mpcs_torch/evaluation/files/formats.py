"""Open files as tables, with one function for each format."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mpcs_torch.errors import Rule, has_control, quoted
from mpcs_torch.evaluation.files.arrays import npy_table, npz_table, torch_table
from mpcs_torch.evaluation.files.delimited import (
    SNIFFED_BYTES,
    SNIFFED_ROWS,
    detect_encoding,
    has_header,
    read_text,
    sniff,
)
from mpcs_torch.evaluation.files.hdf5 import hdf5_table
from mpcs_torch.evaluation.files.json_records import flat_record, parse_records
from mpcs_torch.evaluation.files.read_options import PredictionsError, reading
from mpcs_torch.evaluation.files.tables import Column, FileTable, make_column, unnamed
from mpcs_torch.evaluation.files.unpacked_columns import counted_table, parquet_batches
from mpcs_torch.evaluation.files.weka import HEADER as WEKA_HEADER
from mpcs_torch.evaluation.files.weka import arff_as_csv, distribution_as_csv, is_arff
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.unpacking import unpack, unpacked_zip, zip_members
from mpcs_torch.io.untrusted_files import (
    MAX_COLUMNS,
    MAX_NAME,
    OBJECT_BYTES,
    VALUE_BYTES,
    Unpacked,
    check_regular,
)

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""The supported compressions of text files, by the first bytes of a file."""
LFS_POINTER = b"version https://git-lfs"
"""The beginning of the text that stands for a file which Git LFS has not yet fetched."""


def open_table(path: str | Path, *, is_whole: bool = True) -> FileTable:
    """Open a file as a table: text with any delimiter, JSON, parquet, npz, npy, pt, xlsx or HDF5.

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
        packings = [name for mark, name in PACKED.items() if start.startswith(mark)]
        compression = packings[0] if packings else ""
        read = partial(_content, path, compression, is_whole=is_whole)
        text = partial(_text_table, compression=compression, read=read)
        formats = [known for mark, known in FORMATS.items() if start.startswith(mark)]
        opened = formats[0] if formats else text
        if path.suffix.lower() in (".pt", ".pth"):
            opened = torch_table
        table = opened(path)
        check_names(path, table.names)
        return table


def open_text(path: Path, content: bytes) -> FileTable:
    """Open text that is not yet written to ``path``, as `open_table` will open it then; see there for errors."""
    if content.startswith((*FORMATS, *PACKED)):
        raise PredictionsError(path, Rule("begins_as_text", start=content[:4]))
    table = _text_table(path, compression="", read=lambda: content)
    check_names(path, table.names)
    return table


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise a `PredictionsError` if there are too many columns, or if a name is too long, unprintable or repeated."""
    if len(names) > MAX_COLUMNS:
        raise PredictionsError(
            path, Rule("number_of_columns", maximum=MAX_COLUMNS, number=len(names))
        )
    long = max(map(len, names), default=0)
    if long > MAX_NAME:
        raise PredictionsError(path, Rule("length_of_names", maximum=MAX_NAME, length=long))
    bad = next((name for name in names if has_control(name)), None)
    if bad is not None:
        raise PredictionsError(path, Rule("printable_names", name=bad))
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise PredictionsError(path, Rule("different_columns", names=repeated))


PRINTED_NUMBERS = re.compile(r"\s*\[+\s*[-+0-9.e]+\s+[-+0-9.]")
"""The beginning of an array as numpy prints it: numbers in brackets, without commas."""


def _content(path: Path, compression: str, *, is_whole: bool) -> bytes:
    """Return the decompressed bytes of a text file. Unless ``is_whole``, an unfinished last line is left out."""
    if compression:
        return unpack(path, compression)
    content = path.read_bytes()
    encoding = detect_encoding(content[:SNIFFED_BYTES])
    if is_whole or encoding.startswith("utf-16"):  # a line end has two bytes there
        return content
    end = content.rfind(b"\n") + 1
    # JSON says itself whether it is finished.
    last = content if content.lstrip()[:1] == b"[" else content[end:]
    if last.lstrip()[:1] in (b"[", b"{"):
        with suppress(ValueError, RecursionError):
            json.loads(last)
            return content
    return content[:end]


def _text_table(path: Path, *, compression: str, read: Callable[[], bytes]) -> FileTable:
    content = read()
    form = ""
    sniffed = content[:SNIFFED_BYTES]
    if sniffed.startswith(LFS_POINTER):
        raise PredictionsError(path, Rule("pointer"))
    if sniffed.lstrip().startswith(b"=== Run information ==="):
        raise PredictionsError(path, Rule("report_of_weka"))
    if is_arff(sniffed) or sniffed.startswith(WEKA_HEADER):
        form = "ARFF" if is_arff(sniffed) else "Weka"
        convert = arff_as_csv if form == "ARFF" else distribution_as_csv
        content = convert(content.decode("utf-8-sig")).encode()
        sniffed = content[:SNIFFED_BYTES]
        read = partial(bytes, content)
    text = sniffed.decode(detect_encoding(sniffed), "ignore").lstrip()
    if text[:1] in ("{", "[") and path.suffix.lower() not in (".csv", ".tsv"):
        marks = sum(map(content.count, (b",", b":", b"[", b"{")))
        Unpacked(path).add(len(content) + OBJECT_BYTES * marks)
        return _json_table(path, content.decode("utf-8-sig"), compression)
    dialect = sniff(path, content)
    if compression:
        values = content.count(dialect.delimiter.encode())
        Unpacked(path).add(len(content) + VALUE_BYTES * values)
    words = ", ".join(filter(None, [form, compression, *dialect.unusual]))
    about: dict[str, Any] = {
        "delimiter": dialect.delimiter,
        "decimal": dialect.decimal,
        "dialect": words,
    }
    return FileTable(
        path,
        dialect.names,
        partial(read_text, path, dialect, read),
        dialect.has_names,
        **about,
    )


def _json_table(path: Path, text: str, compression: str) -> FileTable:
    """Open JSON: one record per line, or one value in any form that `parse_records` takes."""
    try:
        records = parse_records(json.loads(text))
    except json.JSONDecodeError as error:
        if PRINTED_NUMBERS.match(text):
            raise PredictionsError(path, Rule("printed_arrays")) from None
        if not error.msg.startswith("Extra data"):
            raise
        records = []
        for row, line in enumerate(filter(str.strip, text.split("\n")), start=1):
            with reading(path, row):
                records.append(json.loads(line))
    table = _nested_table(path, records)
    if not table.names:
        raise PredictionsError(path, Rule("named_records"))
    return replace(table, dialect=compression)


def _nested_table(path: Path, records: Sequence[Any]) -> FileTable:
    """Return a table of records (dictionaries). Nested values become columns named ``outer.inner``."""
    flat = [flat_record(record) for record in records]
    return _records_table(
        path, [*dict.fromkeys(name for record in flat for name in record)], flat
    )


def _records_table(
    path: Path, names: Sequence[str], records: Sequence[Mapping[str, Any]], **about: Any
) -> FileTable:
    """Return a table of ``records``, which map column names to values. ``about`` has other fields of `FileTable`."""

    def load(wanted: Sequence[str], _: object, rows: int | None) -> dict[str, Column]:
        first = records[:rows]
        # Count all values, because a record may lack most of the columns.
        Unpacked(path).add(VALUE_BYTES * len(wanted) * len(first))
        return {
            name: make_column([record.get(name) for record in first]) for name in wanted
        }

    return FileTable(path, names, load, **about)


def _parquet_table(path: Path) -> FileTable:
    from pyarrow import OSFile, parquet, types

    def opened(**options: Any) -> Any:  # pyarrow may read a path as a URL
        return parquet.ParquetFile(OSFile(str(path)), pre_buffer=False, **options)

    file = opened()
    schema = file.schema_arrow
    leaves = [file.schema.column(place) for place in range(len(file.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    encoded = opened(metadata=file.metadata, read_dictionary=texts)

    def read(wanted: Sequence[str], rows: int | None) -> Any:
        return counted_table(
            path, schema, parquet_batches(path, file, encoded, wanted, rows), rows
        )

    if any(types.is_nested(kind) and not _is_list(kind) for kind in schema.types):
        return _nested_table(path, read(schema.names, None).to_pylist())

    def load(wanted: Sequence[str], _: object, rows: int | None) -> dict[str, Column]:
        table = read(wanted, rows)
        return {name: _plain(table.column(name)) for name in wanted}

    return FileTable(path, schema.names, load, load_types=file.read)


def _refuse_arrow(path: Path) -> FileTable:
    raise PredictionsError(path, Rule("arrow_file"))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    is_list = (
        types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    )
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
        values = column.flatten()
        lengths = compute.list_value_length(column).unique().to_pylist()
        if len(lengths) == 1 and lengths[0] and not values.null_count:
            return torch.from_numpy(
                np.array(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)
            )
    return make_column(column.to_pylist()) if _is_list(kind) else column.cast(string())


def _xlsx_table(path: Path) -> FileTable:
    """Open the first sheet of an xlsx file; a formula is read as its last saved value."""
    from openpyxl import load_workbook

    rows: list[Sequence[Any]] = []
    unpacked = Unpacked(path)
    sheets = load_workbook(unpacked_zip(path), read_only=True, data_only=True).worksheets
    sheet = sheets[0]
    sheet.reset_dimensions()  # the declared ones may be wrong
    for row in sheet.iter_rows(values_only=True):
        filled = [cell for cell in row if cell is not None]
        unpacked.add(OBJECT_BYTES * (1 + len(filled)) + VALUE_BYTES * len(row))
        # Cells may share one long text.
        unpacked.add(sum(len(cell) for cell in filled if isinstance(cell, str)))
        if filled:
            rows.append(row)
    if not rows:
        raise PredictionsError(path, Rule("rows_in_sheet"))
    filled_cells = [len([cell for cell in row if cell is not None]) for row in rows]
    titles = 0
    while filled_cells[titles] == 1 < max(filled_cells):
        titles += 1
    rows = rows[titles:]
    has_names = has_header([*map(_texts_in, rows[: SNIFFED_ROWS + 1])], ",")
    if has_names:
        header, *rows = rows
        names = [
            f"Unnamed: {place}" if cell is None else str(cell).strip()
            for place, cell in enumerate(header)
        ]
    else:
        names = unnamed(max(map(len, rows)))
    records = [dict(zip(names, row, strict=False)) for row in rows]
    unusual = []
    if len(sheets) > 1:
        unusual.append(f"only {quoted(sheet.title)} of {len(sheets)} sheets")
    if titles:
        unusual.append("below a title")
    if not has_names:
        unusual.append("no header")
    dialect = ", ".join(unusual)
    return _records_table(path, names, records, has_names=has_names, dialect=dialect)


def _texts_in(row: Sequence[Any]) -> list[str]:
    """Return the text of each cell of a sheet's row; empty for an empty cell."""
    return ["" if cell is None else str(cell) for cell in row]


def _zip_table(path: Path) -> FileTable:
    names = [member.filename for member in zip_members(path)]
    if any(name.startswith("xl/") for name in names):
        return _xlsx_table(path)
    if any(name.endswith("data.pkl") for name in names):
        return torch_table(path)
    return npz_table(path)


FORMATS: Mapping[bytes, Callable[[Path], FileTable]] = {
    b"PAR1": _parquet_table,
    b"ARROW1": _refuse_arrow,
    b"\xff\xff\xff\xff": _refuse_arrow,
    b"PK\x03\x04": _zip_table,
    b"PK\x05\x06": _zip_table,  # without members
    b"\x93NUMPY": npy_table,
    b"\x89HDF": hdf5_table,
    b"\x80": torch_table,
}
"""The function that opens each format, by the first bytes of the file. Files with other first bytes are text."""
