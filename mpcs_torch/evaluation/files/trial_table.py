"""Read trials from columns of csv and parquet files, and from arrays of npz files."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.arrays import Array, streamed_member
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns
from mpcs_torch.evaluation.files.tables import Batch, CsvFile, import_pyarrow, parquet_batches, parquet_names
from mpcs_torch.evaluation.files.trial_text import refuse_binary
from mpcs_torch.evaluation.files.trials import TrialBatch, trial_batches, usual_columns

COLUMNS = ("score", "label")
ROWS = 2**17
"""The number of rows of parquet that are read at a time; csv is read in blocks of bytes."""


def batches_of_table(path: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores and labels with some columns of text.

    Raises:
        PredictionsError: If a column is missing, or a value breaks a rule.
    """
    score, label = usual_columns(path, table_names(path), COLUMNS, columns)
    yield from trial_batches(path, _batches(path, score, label, columns), score, label, columns)


def table_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    if path.suffix.lower() == ".parquet":
        return parquet_names(path)
    refuse_binary(path)
    return CsvFile(path).names


def _batches(path: Path, score: str, label: str, columns: Sequence[str]) -> Iterator[Batch]:
    texts = list(dict.fromkeys([label, *columns]))
    if path.suffix.lower() == ".csv":
        return CsvFile(path).batches(numbers=[score], texts=texts)
    return parquet_batches(path, ROWS, [score, *texts])


ARRAYS = SCORES, LABELS = "scores", "labels"
KINDS = (("fiu", "numbers"), ("biu", "integers or bools"))
"""Of the two arrays: numpy's letters of the kinds of values that it may have, and their names."""
TEXT_KINDS = ("Uiu", "text or integers")
MOST_CHARACTERS = 10_000
"""Of a text: a path of a file has at most 4096."""
ARRAY_ROWS = 2**13
"""The number of rows that are read at a time: few, because each row of an array takes as much as its longest text."""


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays of an npz file."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    check_columns(path, len(names))
    return names


def batches_of_npz(path: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores and labels with some columns of text.

    Raises:
        PredictionsError: If an array is missing, or a value breaks a rule.
    """
    score, label = usual_columns(path, npz_names(path), ARRAYS, columns, kind="arrays")
    needed = list(dict.fromkeys((score, label, *columns)))  # the scores first
    with zipfile.ZipFile(path) as archive:
        arrays = {name: streamed_member(path, archive, name, most_characters=MOST_CHARACTERS) for name in needed}
        yield from trial_batches(path, _array_batches(path, arrays), score, label, columns)


def _array_batches(path: Path, arrays: dict[str, Array]) -> Iterator[Batch]:
    """Yield some rows of arrays: scores, labels and texts."""
    pyarrow = import_pyarrow(path)
    score, first = next(iter(arrays.items()))
    shape = first.shape
    for name, array in arrays.items():
        if len(shape) != 1 or array.shape != shape:
            rule = f"{score} must have the shape (N,)" if len(shape) != 1 else f"{name} must have the shape {shape}"
            raise PredictionsError(path, f"{rule}, but {'has' if name == score else 'have'} {quoted(array.shape)}")
    rules = dict(zip(arrays, KINDS, strict=False))
    for start in range(0, shape[0], ARRAY_ROWS):
        stop = min(start + ARRAY_ROWS, shape[0])
        columns = {}
        for name, array in arrays.items():
            values = np.asarray(array.read(start, stop))
            kinds, rule = rules.get(name, TEXT_KINDS)
            if values.dtype.kind not in kinds:
                raise PredictionsError(path, f"must be {rule}, but is {values.dtype}", column=name)
            whole = values.view(np.uint8) if values.dtype.kind == "b" else values  # a damaged bool may be neither
            columns[name] = pyarrow.array(whole.astype(whole.dtype.newbyteorder("=")))
        yield Batch(start + 1, columns)
