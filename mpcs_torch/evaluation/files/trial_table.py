"""Read trials from columns of csv and parquet files, and from arrays of npz files."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.arrays import Array, streamed_member
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns
from mpcs_torch.evaluation.files.tables import Batch, CsvFile, labels_of, numbers_of, parquet_batches, parquet_names
from mpcs_torch.evaluation.files.trial_text import refuse_binary
from mpcs_torch.evaluation.files.trials import LABEL_RULE, NO_NUMBER, TrialBatch, label_of, usual_columns

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ("score", "label")
ROWS = 2**17
"""The number of rows of parquet that are read at a time; csv is read in blocks of bytes."""


def batches_of_table(path: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores and labels with some columns of text.

    Raises:
        PredictionsError: If a column is missing, or a value breaks a rule.
    """
    score, label = usual_columns(path, table_names(path), COLUMNS, columns)
    for first, held in _batches(path, score, label, columns):
        scores = scores_of(path, held[score], first, score)
        labels = labels_of(path, held[label], label, first, label_of, LABEL_RULE)
        yield TrialBatch(scores, labels, {name: texts_of(path, held[name], name, first) for name in columns})


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


def scores_of(path: Path, values: "pyarrow.Array", first: int, column: str = "score") -> NDArray[np.float64]:
    """Return a column of scores as numbers.

    Raises:
        PredictionsError: If a value is missing, no number, or NaN.
    """
    scores = numbers_of(path, values, column, first)
    bad = np.isnan(scores)
    if bad.any():
        raise PredictionsError(path, NO_NUMBER.format("'nan'"), row=first + int(bad.argmax()), column=column)
    return scores


def texts_of(path: Path, values: "pyarrow.Array", column: str, first: int) -> "pyarrow.Array":
    """Return a column as text.

    Raises:
        PredictionsError: If a value is missing.
    """
    import pyarrow
    from pyarrow import compute

    texts = compute.cast(values, pyarrow.string())
    missing = compute.fill_null(compute.equal(texts, ""), True)
    if compute.any(missing).as_py():
        row = compute.index(missing, True).as_py()
        raise PredictionsError(path, "is missing", row=first + row, column=column)
    return texts


ARRAYS = SCORES, LABELS = "scores", "labels"
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
        for first, held in _array_batches(path, arrays):
            texts = {name: _texts(path, held[name], name, first) for name in columns}
            scores = _scores(path, held[score], score, first)
            yield TrialBatch(scores, _labels(path, held[label], label, first), texts)


def _array_batches(path: Path, arrays: dict[str, Array]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield the number of a first row, and some rows of all arrays."""
    score, first = next(iter(arrays.items()))
    shape = first.shape
    for name, array in arrays.items():
        if len(shape) != 1 or array.shape != shape:
            rule = f"{score} must have the shape (N,)" if len(shape) != 1 else f"{name} must have the shape {shape}"
            raise PredictionsError(path, f"{rule}, but {'has' if name == score else 'have'} {quoted(array.shape)}")
    for start in range(0, shape[0], ARRAY_ROWS):
        stop = min(start + ARRAY_ROWS, shape[0])
        yield start + 1, {name: np.asarray(array.read(start, stop)) for name, array in arrays.items()}


def _scores(path: Path, held: NDArray[Any], name: str, first: int) -> NDArray[np.float64]:
    if held.dtype.kind not in "fiu":
        raise PredictionsError(path, f"{name} must be numbers, but are {held.dtype}")
    bad = np.isnan(held)
    if bad.any():
        raise PredictionsError(path, NO_NUMBER.format("'nan'"), row=first + int(bad.argmax()), column=name)
    return held.astype(np.float64)


def _labels(path: Path, held: NDArray[Any], name: str, first: int) -> NDArray[np.int64]:
    if held.dtype.kind not in "biu":
        raise PredictionsError(path, f"{name} must be integers or bools, but are {held.dtype}")
    values = held.view(np.uint8) if held.dtype.kind == "b" else held  # a damaged bool may be neither
    bad = (values != 0) & (values != 1)
    if bad.any():
        row = int(bad.argmax())
        problem = f"must be 1 for target and 0 for non-target trials, but is {values[row]}"
        raise PredictionsError(path, problem, row=first + row, column=name)
    return values.astype(np.int64)


def _texts(path: Path, held: NDArray[Any], column: str, first: int) -> "pyarrow.Array":
    import pyarrow

    if held.dtype.kind not in "Uiu":
        raise PredictionsError(path, f"must be text or integers, but is {held.dtype}", column=column)
    texts = list(map(str, held.tolist()))
    if "" in texts:
        raise PredictionsError(path, "is missing", row=first + texts.index(""), column=column)
    return pyarrow.array(texts, pyarrow.string())
