"""Read trials from text: a score and a label on each line, or Kaldi's two names and a score."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, lines_of, reading
from mpcs_torch.evaluation.files.hdf5 import is_hdf5, read_key
from mpcs_torch.evaluation.files.tables import Batch, import_pyarrow, labels_of
from mpcs_torch.evaluation.files.trials import LABEL_RULE, TrialBatch, label_of, scores_of, trial_batches

ROWS = 2**16
"""The number of rows that are read at a time."""
START_BYTES = 4096
"""Text has no zero byte; npz, npy, pt and parquet files have some in these."""
PAIR = ("enrollment", "test")
"""The two names on a line."""


def refuse_binary(path: Path) -> None:
    """Refuse files of arrays, which are for predictions of classes."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    if b"\0" in start:
        rule = "must be a csv file, or text with one trial on each line"
        raise PredictionsError(path, f"{rule}, but is a binary file that begins with {quoted(start[:16])}")


def quoted_pair(one: str, other: str) -> str:
    """Return the two names of a trial for a message."""
    return f"{quoted(one)[1:-1]} {quoted(other)[1:-1]}"


def batches_of_text(path: Path, trials: Path | None, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores and labels, with those of the two names on each line that are wanted.

    Raises:
        PredictionsError: If a column is none of these, or a value breaks a rule.
    """
    check_pair_columns(path, PAIR if trials is not None else (), columns)
    refuse_binary(path)
    if trials is None:
        rule = "a score and a label (for two names and a score, give --trials FILE)"
        yield from trial_batches(path, fields_of_lines(path, ("score", "label"), rule), "score", "label", ())
    else:
        yield from _of_pairs(path, trials, columns)


def check_pair_columns(path: Path, has: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse to read columns that are none of the two names of a trial, or of none."""
    missing = [name for name in columns if name not in has]
    if missing:
        problem = f"must have the columns {quoted(list(columns))}, but has {quoted(list(has))}"
        raise PredictionsError(path, problem if has else f"is text without columns, so it has no {quoted(missing[0])}")


def _of_pairs(path: Path, trials: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores with the labels of their trials; each trial must have one score."""
    labels = labels_of_pairs(trials)
    scored: set[tuple[str, str]] = set()
    for first, fields in fields_of_lines(path, (*PAIR, "score"), "two names and a score"):
        pairs = list(zip(*(fields[name].to_pylist() for name in PAIR), strict=True))
        for row, pair in enumerate(pairs, start=first):
            if pair in scored or pair not in labels:
                problem = "appears twice" if pair in scored else f"is not in {trials}"
                raise PredictionsError(path, f"{quoted_pair(*pair)} {problem}", row=row)
            scored.add(pair)
        labels_of_rows = np.array([labels[pair] for pair in pairs], dtype=np.int64)
        yield TrialBatch(
            scores_of(path, fields["score"], first), labels_of_rows, {name: fields[name] for name in columns}
        )
    missing = [pair for pair in labels if pair not in scored]
    refuse_missing(path, trials, len(missing), missing)


def refuse_missing(path: Path, trials: Path, number: int, missing: Sequence[tuple[str, str]]) -> None:
    """Refuse scores of which a number of trials is missing, and name the first."""
    if number:
        example = quoted_pair(*missing[0])
        raise PredictionsError(path, f"has no scores for {number} trials of {trials}, such as {example}")


def labels_of_pairs(trials: Path) -> dict[tuple[str, str], int]:
    """Return the labels of the trials of a list: text in Kaldi's format, or a Key in HDF5.

    Raises:
        PredictionsError: If a label is unknown, or a trial appears twice.
    """
    if is_hdf5(trials):
        key = read_key(trials)
        rows, columns = key.labels.nonzero()
        places = zip(rows.tolist(), columns.tolist(), (key.labels[rows, columns] > 0).tolist(), strict=True)
        return {(key.enrollments[row], key.tests[column]): int(label) for row, column, label in places}
    labels: dict[tuple[str, str], int] = {}
    with reading(trials):
        for first, fields in fields_of_lines(trials, (*PAIR, "label"), "two names and a label"):
            values = labels_of(trials, fields["label"], "label", first, label_of, LABEL_RULE).tolist()
            names = (fields[name].to_pylist() for name in PAIR)
            for row, (one, other, label) in enumerate(zip(*names, values, strict=True), start=first):
                if (one, other) in labels:
                    raise PredictionsError(trials, f"{quoted_pair(one, other)} appears twice", row=row)
                labels[one, other] = label
    return labels


def fields_of_lines(path: Path, names: Sequence[str], rule: str) -> Iterator[Batch]:
    """Yield the fields of lines, split at white space, as columns of text.

    Raises:
        PredictionsError: If a line has more or fewer fields.
    """
    pyarrow = import_pyarrow(path)
    for first, rows in split_lines(path, len(names), rule):
        columns = (pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True))
        yield Batch(first, dict(zip(names, columns, strict=True)))


def split_lines(path: Path, count: int, rule: str) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the number of a first line, and consecutive lines split at white space."""
    with path.open(encoding="utf-8-sig") as file:
        for first, rows in numbered_rows(line.split() for line in lines_of(file, path)):
            for row, fields in enumerate(rows, start=first):
                if len(fields) != count:
                    raise PredictionsError(path, f"must contain {rule}, but contains {len(fields)} fields", row=row)
            yield first, rows


def numbered_rows(rows: Iterator[list[str]]) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the number of a first row, counted from 1, and consecutive rows, of which none is empty."""
    for is_filled, numbered in groupby(enumerate(rows, start=1), key=lambda row: bool(row[1])):
        while some := list(islice(numbered, ROWS)):
            if is_filled:
                yield some[0][0], list(map(itemgetter(1), some))
