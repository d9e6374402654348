"""Read the trials of a detector in the format that the name of the file says."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, reading
from mpcs_torch.evaluation.files.tables import import_pyarrow
from mpcs_torch.evaluation.files.trial_hdf5 import batches_of_hdf5
from mpcs_torch.evaluation.files.trial_table import (
    ARRAYS,
    COLUMNS,
    batches_of_npz,
    batches_of_table,
    npz_names,
    table_names,
)
from mpcs_torch.evaluation.files.trial_text import PAIR, batches_of_text
from mpcs_torch.evaluation.files.trials import TrialBatch, Trials, TrialTable, other_columns
from mpcs_torch.functional.detection.errors import missing_kind
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow

Advance = Callable[[int], None]
KINDS = {".csv": "table", ".parquet": "table", ".npz": "npz", ".h5": "HDF5", ".hdf5": "HDF5"}
"""By suffix, in lower case; any other file is text."""
NAMES = (("trial",), PAIR)
"""The columns that name a trial, unless others are given: the first of these that a file has."""


def read_trials(path: Path, trials: Path | None, advance: Advance) -> Trials:
    """Read the scores and labels of a detector.

    Args:
        path: A csv or parquet file with columns ``score`` and ``label``, or names such as ``y_score`` and ``y_true``;
            an npz file with arrays ``scores`` and ``labels``, or such names; a text file with one trial on each line,
            score and label, or with ``trials`` two names and the score; or with ``trials`` an HDF5 file with the matrix
            of scores of SIDEKIT, BOSARIS or PyBOSARIS, in which pairs that are no trials are ignored. Labels are 1,
            target or true for target trials, and 0, nontarget or false for non-target trials; those of npz are integers
            or bools.
        trials: A list of trials: text in Kaldi's format, two names and the label on each line, or a Key in HDF5.
        advance: Called with the number of rows after each batch, to show progress.

    Raises:
        PredictionsError: If a file cannot be read, a value breaks a rule, or scores and trials do not match.
    """
    return read_trial_table(path, trials, advance).trials


def read_trial_table(
    path: Path,
    trials: Path | None,
    advance: Advance,
    *,
    named: bool = False,
    key: Sequence[str] = (),
    columns: Sequence[str] = (),
    both_kinds: bool = True,
) -> TrialTable:
    """Read trials with their names and with columns of groups.

    Args:
        path: As in `read_trials`. HDF5, and text with two names on each line, have the columns enrollment and test.
        trials: As in `read_trials`.
        advance: As in `read_trials`.
        named: Whether to read the names of the trials.
        key: The columns that name a trial together. Default: ``trial``, or ``enrollment`` and ``test``, if there are.
        columns: Those to read as groups.
        both_kinds: Whether there must be target and non-target trials.

    Raises:
        PredictionsError: As `read_trials`, or if a column is missing or two trials have the same name.
    """
    if named or columns:
        import_pyarrow(path)
    with reading(path):
        naming = _naming(path, trials, key) if named else ()
        wanted = list(dict.fromkeys([*naming, *columns]))
        read, texts = _collected(path, _batches(path, trials, wanted), advance)
        if not len(read.labels):
            raise PredictionsError(path, "contains no rows")
        if both_kinds and (missing := missing_kind(read.labels)) is not None:
            rule = "must contain target and non-target trials"
            raise PredictionsError(trials or path, f"{rule}, but contains no {missing.removesuffix('s')} trial")
        names = _names(path, [texts[name] for name in naming]) if naming else None
        return TrialTable(read, names, {name: _groups(texts[name]) for name in columns})


def columns_of(path: Path, trials: Path | None) -> list[str]:
    """Return the columns of text that a file has for its trials, besides scores and labels."""
    with reading(path):
        if _kind(path) == "table":
            return other_columns(table_names(path), COLUMNS)
        if _kind(path) == "npz":
            return other_columns(npz_names(path), ARRAYS)
        return list(PAIR) if trials is not None or _kind(path) == "HDF5" else []


def _naming(path: Path, trials: Path | None, given: Sequence[str]) -> Sequence[str]:
    if given and _kind(path) in ("table", "npz"):
        return given
    names = set(columns_of(path, trials))
    return next((columns for columns in NAMES if names.issuperset(columns)), ())


def _kind(path: Path) -> str:
    return KINDS.get(path.suffix.lower(), "text")


def _batches(path: Path, trials: Path | None, columns: Sequence[str]) -> Iterator[TrialBatch]:
    kind = _kind(path)
    if kind == "text":
        return batches_of_text(path, trials, columns)
    if kind == "HDF5":
        return batches_of_hdf5(path, trials, columns)
    if trials is not None:
        problem = "contains its own labels: --trials is only for HDF5, and for text with two names and a score"
        raise PredictionsError(path, problem)
    return (batches_of_table if kind == "table" else batches_of_npz)(path, columns)


def _collected(
    path: Path, batches: Iterator[TrialBatch], advance: Advance
) -> "tuple[Trials, dict[str, pyarrow.ChunkedArray]]":
    """Return all trials, and the columns of text."""
    scores, labels, texts = bytearray(), bytearray(), dict[str, list[Any]]()
    with reading(path):
        for batch in batches:
            scores += batch.scores.astype(np.float64).tobytes()
            labels += batch.labels.astype(np.bool_).tobytes()
            for name, values in batch.texts.items():
                texts.setdefault(name, []).append(values)
            advance(len(batch.scores))
    if not scores:
        return Trials(torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.bool)), {}
    columns = {name: import_pyarrow(path).chunked_array(values) for name, values in texts.items()}
    return Trials(torch.frombuffer(scores, dtype=torch.float64), torch.frombuffer(labels, dtype=torch.bool)), columns


def _names(path: Path, columns: "Sequence[pyarrow.ChunkedArray]") -> "pyarrow.StringArray":
    """Join the columns that name a trial; refuse names that appear twice."""
    from pyarrow import compute

    names = columns[0] if len(columns) == 1 else compute.binary_join_element_wise(*columns, " ")
    names = names.combine_chunks()
    if compute.count_distinct(names).as_py() < len(names):
        counted = compute.value_counts(names)
        twice = compute.filter(counted.field("values"), compute.greater(counted.field("counts"), 1))
        raise PredictionsError(
            path, f"must name each trial once, but {quoted(twice[0].as_py())} appears more than once"
        )
    return names


def _groups(column: "pyarrow.ChunkedArray") -> Groups:
    encoded = column.combine_chunks().dictionary_encode()
    return Groups(encoded.dictionary.to_pylist(), torch.from_numpy(np.from_dlpack(encoded.indices).astype(np.int64)))
