"""Read columns of parquet files, and count what they take in memory before, or while, they are unpacked.

In a few bytes, such files can store a billion equal values, or a long text that a million rows refer to.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.io.untrusted_files import (
    FREE_BYTES,
    MAX_COLUMNS,
    VALUE_BYTES,
    FileRuleError,
    Unpacked,
)

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch, Schema, Table, parquet

BATCH_ROWS = 2**16
"""The maximum number of rows of a parquet file that are unpacked before their texts are counted."""
SHORT_TYPES = ("INT32", "FLOAT", "BYTE_ARRAY")
"""The types of values of parquet files that take at least 4 bytes, not `VALUE_BYTES`; for a text, it is the offset."""


def counted_table(
    path: Path, schema: "Schema", batches: Iterable["RecordBatch"], rows: int | None
) -> "Table":
    """Join ``batches`` of columns of ``schema`` until there are ``rows`` rows; count what they take in memory."""
    import pyarrow

    counted, number, unpacked = list[Any](), 0, Unpacked(path)
    for batch in batches:
        unpacked.add(sum(map(decoded_bytes, batch.columns)))
        counted.append(batch)
        number += len(batch)
        if rows is not None and number >= rows:
            break
    return pyarrow.Table.from_batches(counted, None if counted else schema)


def parquet_batches(
    path: Path,
    file: "parquet.ParquetFile",
    encoded: "parquet.ParquetFile",
    names: Sequence[str],
    rows: int | None,
) -> Iterator["RecordBatch"]:
    """Yield batches of the columns ``names``; count their declared values first. Batches of long texts have few rows.

    ``encoded`` is the same file as ``file``, opened to read texts as dictionaries. For the first ``rows`` rows only,
    batches are not larger.
    """
    declared, chosen = Unpacked(path), {*names}
    leaves = [file.schema.column(place) for place in range(len(file.schema))]
    wanted = [
        (place, leaf) for place, leaf in enumerate(leaves) if _is_in(leaf.path, chosen)
    ]
    for group in range(file.num_row_groups):
        metadata, row_bytes = file.metadata.row_group(group), 1
        declared.add(max(0, metadata.total_byte_size))
        # Metadata of a damaged column are an error in a batch, but kill the process where pyarrow returns them itself.
        next(file.iter_batches(1, row_groups=[group], columns=names), None)
        for place, leaf in wanted:
            chunk = metadata.column(place)
            number, size = chunk.num_values, chunk.total_uncompressed_size
            width = (
                4 if leaf.physical_type in SHORT_TYPES else max(VALUE_BYTES, leaf.length)
            )
            declared.add(max(0, number * width - size))
            if (
                leaf.physical_type != "BYTE_ARRAY"
                or number * size < FREE_BYTES // MAX_COLUMNS
            ):
                continue
            # Each of these texts may repeat the start of the text before. Others may repeat those of a dictionary.
            is_prefixed = "DELTA_BYTE_ARRAY" in chunk.encodings
            longest = size if is_prefixed else _longest_text(encoded, group, leaf.path)
            if leaf.max_repetition_level:  # a row can have any number of values
                declared.add(number * longest)
            else:
                row_bytes += longest
        at_once = min(
            BATCH_ROWS, FREE_BYTES // row_bytes, BATCH_ROWS if rows is None else rows
        )
        yield from file.iter_batches(max(1, at_once), row_groups=[group], columns=names)


def _is_in(path: str, names: set[str]) -> bool:
    """Return whether the value ``path`` of a parquet file, such as ``a.list.element``, is in one of its columns."""
    parts = path.split(".")  # names of columns may have dots, too
    return any(".".join(parts[:end]) in names for end in range(1, len(parts) + 1))


def decoded_bytes(array: "Array") -> int:
    """Return the bytes of memory that ``array`` takes once dictionaries are replaced by their values."""
    from pyarrow import ExtensionArray, types

    array = array.storage if isinstance(array, ExtensionArray) else array
    kind = array.type
    if kind.num_fields:
        return VALUE_BYTES * len(array) + sum(map(decoded_bytes, _inner(array)))
    is_encoded = types.is_dictionary(kind)
    sizes = _text_sizes(array.dictionary if is_encoded else array)
    if sizes is None:
        is_narrow = types.is_null(kind) or kind.bit_width < 8
        return len(array) * (
            VALUE_BYTES if is_encoded or is_narrow else kind.bit_width // 8
        )
    return int(
        (sizes[np.from_dlpack(array.indices.drop_null())] if is_encoded else sizes).sum()
    )


def _inner(array: "Array") -> Sequence["Array"]:
    """Return the arrays with the values in an array of lists, records or maps; refuse other nested types."""
    from pyarrow import types

    kind = array.type
    if types.is_struct(kind):
        return list(array.flatten())
    if types.is_map(kind):
        return [array.keys, array.items]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [array.flatten()]
    raise FileRuleError("column_types", type=str(kind))


def _text_sizes(array: "Array") -> NDArray[Any] | None:
    """Return the bytes of each text or binary value, (n,); None for an array of another type."""
    from pyarrow import compute, types

    kind = array.type
    if (
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
    ):
        return np.from_dlpack(compute.binary_length(array).fill_null(0))
    return None


def _longest_text(encoded: "parquet.ParquetFile", group: int, leaf: str) -> int:
    """Return the size of the longest text in a column's dictionary. A batch of a single row has all of it."""
    from pyarrow import types

    remaining = list[Any]()
    for batch in islice(encoded.iter_batches(1, row_groups=[group], columns=[leaf]), 1):
        remaining += batch.columns
    while remaining and not types.is_dictionary(remaining[-1].type):
        remaining += _inner(remaining.pop())
    sizes = _text_sizes(remaining[-1].dictionary) if remaining else None
    return 0 if sizes is None else int(sizes.max(initial=0))
