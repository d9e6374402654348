"""Read trials from columns of csv and parquet files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.tables import Batch, CsvFile, labels_of, numbers_of, parquet_batches, parquet_names
from mpcs_torch.evaluation.files.trial_text import refuse_binary
from mpcs_torch.evaluation.files.trials import LABEL_RULE, NO_NUMBER, TrialBatch, label_of, usual_columns

if TYPE_CHECKING:
    import pyarrow

OWN = ("score", "label")
ROWS = 2**17
"""The number of rows of parquet that are read at a time; csv is read in blocks of bytes."""


def batches_of_table(path: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores and labels with some columns of text.

    Raises:
        PredictionsError: If a column is missing, or a value breaks a rule.
    """
    score, label = usual_columns(path, table_names(path), OWN, columns)
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
