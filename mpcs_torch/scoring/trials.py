"""Read the scores and labels of a detector from csv or from text in Kaldi's format."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.scoring.arrow_columns import labels_of, numbers_of
from mpcs_torch.scoring.chunks import PredictionsError, is_number, lines_of, reading
from mpcs_torch.scoring.csv_file import CsvFile

ROWS = 2**16
"""The number of rows that are read at a time."""
START_BYTES = 4096
"""Text has no zero byte; npz, npy, pt and parquet files have some in these."""
LABELS = {"1": 1, "target": 1, "true": 1, "0": 0, "nontarget": 0, "false": 0}
LABEL_RULE = f"must be one of {', '.join(LABELS)}"
NO_NUMBER = "must be a number, but is {}"
Parsed = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Scores and labels of some rows."""
Texts = tuple[Sequence[int], list[str], list[str]]
"""Row numbers, scores and labels of some rows."""


class Trials(NamedTuple):
    """The score and the label of each trial."""

    scores: Tensor
    """(N,), float64."""
    labels: Tensor
    """(N,), bool: True for target trials, False for non-target trials."""


def read_trials(path: Path, trials: Path | None, advance: Callable[[int], None], *, world: World = ALONE) -> Trials:
    """Read the scores and labels of a detector; of several processes, each reads a share of them.

    Args:
        path: A csv file with columns ``score`` and ``label``, or a text file with one trial on each line: score and
            label, or with ``trials`` two names and the score. Labels are 1, target or true for target trials, and 0,
            nontarget or false for non-target trials.
        trials: A list of trials in Kaldi's format: two names and the label on each line.
        advance: Called with the number of rows after each batch, to show progress.
        world: The processes that read the file together. Default: this one.

    Raises:
        PredictionsError: If a file cannot be read, a value breaks a rule, or scores and trials do not match.
        OtherProcessError: If another process has raised such an error.
    """
    found = world.done_by_all(lambda: _read_share(path, trials, advance, world))
    told = world.told_by_all((len(found.labels), int(found.labels.sum())))
    rows, targets = (sum(counts) for counts in zip(*told, strict=True))
    world.told_by_first(lambda: _check_kinds(path, trials, rows, targets))
    return found


def _check_kinds(path: Path, trials: Path | None, rows: int, targets: int) -> None:
    if not rows:
        raise PredictionsError(path, "contains no rows")
    for name, number in (("target", targets), ("non-target", rows - targets)):
        if not number:
            raise PredictionsError(
                trials or path, f"must contain target and non-target trials, but contains no {name} trial"
            )


def _read_share(path: Path, trials: Path | None, advance: Callable[[int], None], world: World) -> Trials:
    scores, labels = array("d"), array("b")
    is_csv = path.suffix.lower() == ".csv"
    if is_csv and trials is not None:
        raise PredictionsError(
            path, "contains its own labels: --trials is only for text files with two names and a score"
        )
    with reading(path):
        refuse_binary(path)
        for batch_scores, batch_labels in _of_csv(path, world) if is_csv else _of_text(path, trials, world):
            scores.frombytes(batch_scores.astype(np.float64).tobytes())
            labels.frombytes(batch_labels.astype(np.int8).tobytes())
            advance(len(batch_scores))
    if not scores:
        return Trials(torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.bool))
    return Trials(torch.frombuffer(scores, dtype=torch.float64), torch.frombuffer(labels, dtype=torch.int8).bool())


def refuse_binary(path: Path) -> None:
    """Refuse files of arrays, which are for predictions of classes."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    if b"\0" in start:
        rule = "must be a csv file, or text with one trial on each line"
        raise PredictionsError(path, f"{rule}, but is a binary file that begins with {quoted(start[:16])}")


def _pair(one: str, other: str) -> str:
    return f"{quoted(one)[1:-1]} {quoted(other)[1:-1]}"


def _of_csv(path: Path, world: World) -> Iterator[Parsed]:
    file = CsvFile(path)
    if "score" not in file.names or "label" not in file.names:
        rule = "must begin with a header that contains score and label"
        raise PredictionsError(path, f"{rule}, but begins with {quoted(file.names)}")
    batches = file.batches(numbers=["score"], texts=["label"])
    for first, columns in islice(batches, world.rank, None, world.size):
        scores = numbers_of(path, columns["score"], "score", first)
        bad = np.isnan(scores)
        if bad.any():
            raise PredictionsError(path, NO_NUMBER.format("'nan'"), row=first + int(bad.argmax()), column="score")
        yield scores, labels_of(path, columns["label"], "label", first, _label, LABEL_RULE)


def _of_text(path: Path, trials: Path | None, world: World) -> Iterator[Parsed]:
    for rows, scores, labels in _of_lines(path, world) if trials is None else _of_pairs(path, trials, world):
        yield np.array(parse_scores(path, rows, scores)), np.array(_labels(path, rows, labels))


def _of_lines(path: Path, world: World) -> Iterator[Texts]:
    batches = split_lines(path, 2, "a score and a label (for two names and a score, give --trials FILE)")
    for rows, held in islice(batches, world.rank, None, world.size):
        yield rows, [fields[0] for fields in held], [fields[1] for fields in held]


def _of_pairs(path: Path, trials: Path, world: World) -> Iterator[Texts]:
    """Yield scores with the labels of their trials; each trial must have one score."""
    labels = _labels_of_pairs(trials, world)
    scored: set[tuple[str, str]] = set()
    for rows, held in _own_lines(path, "two names and a score", world):
        for row, (one, other, _) in zip(rows, held, strict=True):
            if (one, other) in scored or (one, other) not in labels:
                problem = "appears twice" if (one, other) in scored else f"is not in {trials}"
                raise PredictionsError(path, f"{_pair(one, other)} {problem}", row=row)
            scored.add((one, other))
        yield rows, [fields[2] for fields in held], [labels[fields[0], fields[1]] for fields in held]
    if len(scored) < len(labels):
        one, other = next(pair for pair in labels if pair not in scored)
        number = f"{len(labels) - len(scored)}{' or more' if world.size > 1 else ''}"
        raise PredictionsError(path, f"has no scores for {number} trials of {trials}, such as {_pair(one, other)}")


def _own_lines(path: Path, rule: str, world: World) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Yield the lines of those pairs of names that are this process's in both files, wherever they stand."""
    for rows, held in split_lines(path, 3, rule):
        if world.size == 1:
            yield rows, held
        else:
            own = [
                place
                for place, (one, other, _) in enumerate(held)
                if crc32(f"{one} {other}".encode()) % world.size == world.rank
            ]
            yield [rows[place] for place in own], [held[place] for place in own]


def _labels_of_pairs(trials: Path, world: World) -> dict[tuple[str, str], str]:
    labels: dict[tuple[str, str], str] = {}
    with reading(trials):
        for rows, held in _own_lines(trials, "two names and a label", world):
            _labels(trials, rows, [fields[2] for fields in held])
            for row, (one, other, label) in zip(rows, held, strict=True):
                if (one, other) in labels:
                    raise PredictionsError(trials, f"{_pair(one, other)} appears twice", row=row)
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
    labels = [_label(text) for text in texts]
    if None in labels:
        place = labels.index(None)
        raise PredictionsError(path, f"{LABEL_RULE}, but is {quoted(texts[place])}", row=rows[place], column="label")
    return [label for label in labels if label is not None]


def _label(text: str) -> int | None:
    return LABELS.get(text.strip().lower())
