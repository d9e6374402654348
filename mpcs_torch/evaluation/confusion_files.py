"""Read a confusion matrix from csv, and score its decisions."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.spec import MAX_MATRIX_CLASSES
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns, lines_of, reading

if TYPE_CHECKING:
    from mpcs_torch.evaluation.classifier_scores import ClassifierScores
    from mpcs_torch.evaluation.result import Result
    from mpcs_torch.metrics.by_name import MetricEntry

MOST_SAMPLES = 2**53
"""Of all pairs together: whole numbers of float64 are exact up to here."""


def read_confusion(path: Path) -> tuple[list[str], Tensor]:
    """Read a matrix: the predicted classes in the header, the true class first in each row, both in the same order.

    Returns:
        The classes, and the number of samples of each pair of them: int64 (C, C), rows true classes.

    Raises:
        PredictionsError: If the file cannot be read, or is no such matrix.
    """
    with reading(path), path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(lines_of(file, path)) if row] or [[]]
    names = header[1:]
    check_columns(path, len(header))
    if len(names) < 2 or len(set(names)) < len(names):
        rule = "must begin with a header of an empty cell and at least two class names that differ"
        raise PredictionsError(path, f"{rule}, but begins with {quoted(header)}")
    if len(names) > MAX_MATRIX_CLASSES:
        raise PredictionsError(path, f"must have at most {MAX_MATRIX_CLASSES} classes, but has {len(names)}")
    given = [row[0] for row in rows]
    if given != names:
        problem = f"must have a row for each class in the order of the header, but has {quoted(given)}"
        raise PredictionsError(path, problem)
    counts = list[list[int]]()
    for number, (_, *cells) in enumerate(rows, start=1):
        if len(cells) != len(names):
            raise PredictionsError(path, f"must have {len(names)} counts, but has {len(cells)}", row=number)
        for name, cell in zip(names, cells, strict=True):
            if not cell.isdecimal() or len(cell) > 16:
                problem = f"must be a whole number of at least 0, but is {quoted(cell)}"
                raise PredictionsError(path, problem, row=number, column=name)
        counts.append(list(map(int, cells)))
    total = sum(map(sum, counts))
    if not 0 < total <= MOST_SAMPLES:
        raise PredictionsError(path, f"must count from 1 to {MOST_SAMPLES} samples, but counts {total}")
    return names, torch.tensor(counts)


def score_confusion(
    path: Path, concern: ConcernSpec | None, *, entries: "Sequence[MetricEntry] | None" = None, intervals: bool = True
) -> "Result[ClassifierScores]":
    """Evaluate the decisions of a file with a confusion matrix.

    Args:
        path: The file; see `read_confusion`.
        concern: Which errors matter, for the metrics that ask.
        entries: The metrics. Default: all of decisions.
        intervals: Whether values get intervals.

    Raises:
        PredictionsError: If the file is no confusion matrix, or a metric needs more than decisions.
    """
    from mpcs_torch.evaluation.evaluation import evaluate_confusion

    names, counts = read_confusion(path)
    if concern is not None and list(concern.classes) != names:
        problem = f"must have the classes of the concern, {quoted(list(concern.classes))}, but has {quoted(names)}"
        raise PredictionsError(path, problem)
    others = [entry.name for entry in entries or () if entry.takes != "decisions"]
    if others:
        raise PredictionsError(path, f"holds decisions alone, but {', '.join(others)} must have more")
    return evaluate_confusion(counts, names, model=path.name, concern=concern, metrics=entries, intervals=intervals)
