"""Fill open files with trials: csv, parquet, npz, and text in Kaldi's format."""

import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mpcs_torch.evaluation.bins import Groups
from mpcs_torch.scoring.csv_file import write_csv_rows
from mpcs_torch.scoring.trials.held import TrialTable
from mpcs_torch.scoring.trials.npz import LABELS, SCORES
from mpcs_torch.scoring.trials.text import PAIR

ROWS = 2**16
"""The number of rows that are written at a time."""


def fill_csv(file: BinaryIO, table: TrialTable) -> None:
    """Write a header, the columns of groups, scores and labels."""
    write_csv_rows(file, [[*table.groups, "score", "label"]])
    for rows in _blocks(table):
        columns = [_texts(group, rows) for group in table.groups.values()]
        scores = map(repr, table.trials.scores[rows].tolist())
        write_csv_rows(file, zip(*columns, scores, table.trials.label_names(rows), strict=True))


def fill_parquet(file: BinaryIO, table: TrialTable) -> None:
    """Write the columns of groups, scores and labels."""
    import pyarrow
    from pyarrow import parquet

    types = {**dict.fromkeys(table.groups, pyarrow.string()), "score": pyarrow.float64(), "label": pyarrow.string()}
    schema = pyarrow.schema(types)
    with parquet.ParquetWriter(file, schema) as writer:
        for rows in _blocks(table):
            columns: list[Any] = [_texts(group, rows) for group in table.groups.values()]
            columns += [table.trials.scores[rows].numpy(), table.trials.label_names(rows)]
            arrays = [pyarrow.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))


def fill_npz(file: BinaryIO, table: TrialTable) -> None:
    """Write arrays of scores, of labels, and of the texts of groups."""
    with zipfile.ZipFile(file, "w") as archive:
        _write_array(archive, SCORES, table, "<f8", lambda rows: table.trials.scores[rows].numpy())
        _write_array(archive, LABELS, table, "|b1", lambda rows: table.trials.labels[rows].numpy())
        for column, group in table.groups.items():
            longest = max(1, *map(len, group.names)) if group.names else 1
            _write_array(archive, column, table, f"<U{longest}", partial(_text_array, group))


def fill_text(file: BinaryIO, table: TrialTable, values: Callable[[slice], list[str]]) -> None:
    """Write two names and a value on each line."""
    for rows in _blocks(table):
        columns = [_texts(table.groups[name], rows) for name in PAIR]
        file.writelines(f"{' '.join(fields)}\n".encode() for fields in zip(*columns, values(rows), strict=True))


def _blocks(table: TrialTable) -> Iterator[slice]:
    trials = len(table.trials.labels)
    return (slice(start, min(start + ROWS, trials)) for start in range(0, trials, ROWS))


def _texts(group: Groups, rows: slice) -> list[str]:
    return [group.names[code] for code in group.codes[rows].tolist()]


def _text_array(group: Groups, rows: slice) -> NDArray[np.str_]:
    return np.array(_texts(group, rows))


def _write_array(
    archive: zipfile.ZipFile, name: str, table: TrialTable, dtype: str, values: Callable[[slice], NDArray[Any]]
) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": (len(table.trials.labels),)}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        npy.write_array_header_1_0(file, header)
        for rows in _blocks(table):
            file.write(values(rows).astype(dtype).tobytes())
