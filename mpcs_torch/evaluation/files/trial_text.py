"""Read trials from text: a score and a label on each line, or Kaldi's two names and a score."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, is_number, lines_of, reading
from mpcs_torch.evaluation.files.hdf5 import is_hdf5, pairs_of_key, read_key
from mpcs_torch.evaluation.files.trials import LABEL_RULE, NO_NUMBER, TrialBatch, label_of

if TYPE_CHECKING:
    import pyarrow

ROWS = 2**16
"""The number of rows that are read at a time."""
START_BYTES = 4096
"""Text has no zero byte; npz, npy, pt and parquet files have some in these."""
PAIR = ("enrollment", "test")
"""The two names on a line."""
Texts = tuple[Sequence[int], list[str], list[str]]
"""Row numbers, scores and labels of some rows."""


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
        for rows, scores, labels in _of_lines(path):
            yield TrialBatch(np.array(parse_scores(path, rows, scores)), np.array(_labels(path, rows, labels)), {})
    else:
        yield from _of_pairs(path, trials, columns)


def check_pair_columns(path: Path, has: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse to read columns that are none of the two names of a trial, or of none."""
    missing = [name for name in columns if name not in has]
    if missing:
        problem = f"must have the columns {quoted(list(columns))}, but has {quoted(list(has))}"
        raise PredictionsError(path, problem if has else f"is text without columns, so it has no {quoted(missing[0])}")


def _of_lines(path: Path) -> Iterator[Texts]:
    for rows, held in split_lines(path, 2, "a score and a label (for two names and a score, give --trials FILE)"):
        yield rows, [fields[0] for fields in held], [fields[1] for fields in held]


def _of_pairs(path: Path, trials: Path, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield scores with the labels of their trials; each trial must have one score."""
    labels = labels_of_pairs(trials)
    scored: set[tuple[str, str]] = set()
    for rows, held in split_lines(path, 3, "two names and a score"):
        for row, (one, other, _) in zip(rows, held, strict=True):
            if (one, other) in scored or (one, other) not in labels:
                problem = "appears twice" if (one, other) in scored else f"is not in {trials}"
                raise PredictionsError(path, f"{quoted_pair(one, other)} {problem}", row=row)
            scored.add((one, other))
        scores = parse_scores(path, rows, [fields[2] for fields in held])
        found = [labels[fields[0], fields[1]] for fields in held]
        texts = {name: [fields[PAIR.index(name)] for fields in held] for name in columns}
        yield TrialBatch(np.array(scores), np.array(found, dtype=np.int64), arrow_texts(texts))
    missing = len(labels) - len(scored)
    example = next((pair for pair in labels if pair not in scored), ("", ""))
    refuse_missing(path, trials, missing, example)


def refuse_missing(path: Path, trials: Path, missing: int, example: tuple[str, str]) -> None:
    """Refuse scores of which a number of trials is missing, and name one."""
    if missing:
        raise PredictionsError(path, f"has no scores for {missing} trials of {trials}, such as {quoted_pair(*example)}")


def arrow_texts(columns: Mapping[str, list[str]]) -> "dict[str, pyarrow.Array]":
    """Return lists of texts as arrays of arrow, which is imported only if there are any."""
    if not columns:
        return {}
    import pyarrow

    return {name: pyarrow.array(texts, pyarrow.string()) for name, texts in columns.items()}


def labels_of_pairs(trials: Path) -> dict[tuple[str, str], int]:
    """Return the labels of the trials of a list: text in Kaldi's format, or a Key in HDF5.

    Raises:
        PredictionsError: If a label is unknown, or a trial appears twice.
    """
    if is_hdf5(trials):
        return dict(pairs_of_key(read_key(trials)))
    labels: dict[tuple[str, str], int] = {}
    with reading(trials):
        for rows, held in split_lines(trials, 3, "two names and a label"):
            found = _labels(trials, rows, [fields[2] for fields in held])
            for row, (one, other, _), label in zip(rows, held, found, strict=True):
                if (one, other) in labels:
                    raise PredictionsError(trials, f"{quoted_pair(one, other)} appears twice", row=row)
                labels[one, other] = label
    return labels


def split_lines(path: Path, count: int, rule: str) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Yield row numbers and lines split at white space."""
    with path.open(encoding="utf-8-sig") as file:
        for rows, held in numbered_rows(line.split() for line in lines_of(file, path)):
            for row, fields in zip(rows, held, strict=True):
                if len(fields) != count:
                    raise PredictionsError(path, f"must contain {rule}, but contains {len(fields)} fields", row=row)
            yield rows, held


def numbered_rows(rows: Iterator[list[str]]) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Yield batches of rows that are not empty, with their numbers, counted from 1."""
    numbered = ((number, row) for number, row in enumerate(rows, start=1) if row)
    while held := list(islice(numbered, ROWS)):
        yield [number for number, _ in held], [row for _, row in held]


def parse_scores(path: Path, rows: Sequence[int], texts: list[str]) -> list[float]:
    """Return the numbers that texts hold; refuse NaN and other texts."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        numbers = [float(text) if is_number(text) else nan for text in texts]
    if any(number != number for number in numbers):
        place = next(place for place, number in enumerate(numbers) if number != number)
        raise PredictionsError(path, NO_NUMBER.format(quoted(texts[place])), row=rows[place], column="score")
    return numbers


def _labels(path: Path, rows: Sequence[int], texts: list[str]) -> list[int]:
    labels = [label_of(text) for text in texts]
    if None in labels:
        place = labels.index(None)
        raise PredictionsError(path, f"{LABEL_RULE}, but is {quoted(texts[place])}", row=rows[place], column="label")
    return [label for label in labels if label is not None]
