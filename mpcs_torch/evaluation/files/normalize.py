"""Normalise the scores of trials by those of a cohort."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError, reading
from mpcs_torch.evaluation.files.tables import Batch, CsvFile, labels_of
from mpcs_torch.evaluation.files.trial_text import PAIR, fields_of_lines, refuse_binary
from mpcs_torch.evaluation.files.trial_writers import rewrite_scores
from mpcs_torch.evaluation.files.trials import scores_of
from mpcs_torch.functional.detection.normalization import (
    CohortStatistics,
    SameScoresError,
    cohort_statistics,
    normalize_scores,
)


class Cohort(NamedTuple):
    """The cohort scores of each name, an enrolment or a test, in general."""

    places: dict[str, int]
    """By name, its place in the statistics."""
    statistics: CohortStatistics
    fewer: int = 0
    """The number of names with fewer scores than the highest ones that were asked for: all of theirs were taken."""


def read_cohort(path: Path, advance: Advance, *, top: int | None = None) -> Cohort:
    """Read scores of names against a cohort: all, or the highest ones of each name if ``top`` says how many.

    They are in a csv file with columns ``name`` and ``score``, or in text with a name, one of the cohort and a score on
    each line. A score that is not finite, and a name without two scores that differ, are refused.
    """
    places: dict[str, int] = {}
    names, scores = array("q"), array("d")

    def place_of(name: str) -> int | None:
        return places.setdefault(name, len(places)) if name else None

    with reading(path):
        refuse_binary(path)
        for first, columns in _batches(path):
            places_of_names = labels_of(path, columns["name"], "name", first, place_of, "must not be empty")
            values = scores_of(path, columns["score"], first)
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(bad.argmax())
                problem = f"must be finite, but is {values[row]:g}"
                raise PredictionsError(path, problem, row=len(scores) + row + 1, column="score")
            names.frombytes(places_of_names.tobytes())
            scores.frombytes(values.tobytes())
            advance(len(values))
        if not scores:
            raise PredictionsError(path, "contains no rows")
        preds, owners = torch.frombuffer(scores, dtype=torch.float64), torch.frombuffer(names, dtype=torch.int64)
        try:
            statistics = cohort_statistics(preds, owners, num_names=len(places), top=top)
        except SameScoresError as error:
            name = quoted(list(places)[error.name])
            highest = "" if top is None else f" among its {top} highest"
            raise PredictionsError(path, f"must have two scores that differ{highest} for {name}") from None
        return Cohort(places, statistics, int((owners.bincount() < (top or 0)).sum()))


def _batches(path: Path) -> Iterator[Batch]:
    """Yield the columns ``name`` and ``score``."""
    if path.suffix.lower() != ".csv":
        return fields_of_lines(path, ("name", "cohort", "score"), "a name, a name of the cohort and a score")
    file = CsvFile(path)
    if not {"name", "score"} <= set(file.names):
        raise PredictionsError(path, f"must have the columns ['name', 'score'], but has {quoted(file.names)}")
    return file.batches(numbers=["score"], texts=["name"])


NormalizationMethod = Literal["z", "t", "s", "adaptive-s"]
SIDES: dict[str, Sequence[str]] = {"z": PAIR[:1], "t": PAIR[1:], "s": PAIR, "adaptive-s": PAIR}
"""Whose cohort scores each method uses."""


def normalize_trials(
    path: Path, out: Path, cohort: Path, method: NormalizationMethod, advance: Advance, *, top: int | None = None
) -> int:
    """Copy a file of trials with normalised scores; labels and further columns stay, and none is needed.

    Args:
        path: Text with two names and a score on each line, or a csv or parquet file with columns ``enrollment``,
            ``test`` and ``score``.
        out: The file to write, in the same format.
        cohort: The scores of enrolments and tests against a cohort, as `read_cohort` reads them.
        method: z uses the scores of the enrolment, t those of the test, s and adaptive-s both.
        advance: Called with the number of rows after each batch.
        top: Take only so many of the highest scores of each name: adaptive-s needs it. Default: all.

    Returns:
        The number of names that have fewer cohort scores than ``top``: all of theirs were taken.

    Raises:
        PredictionsError: If a file cannot be read, or the cohort has no scores for a name that the method needs.
    """
    sides = SIDES[method]
    places, statistics, fewer = read_cohort(cohort, advance, top=top)

    def change(scores: Tensor, *columns: list[str]) -> Tensor:
        of_sides = {}
        for side, names in zip(sides, columns, strict=True):
            missing = next((name for name in names if name not in places), None)
            if missing is not None:
                raise PredictionsError(cohort, f"has no scores for {quoted(missing)}, which is in {side} of {path}")
            of_sides[side] = statistics.of(torch.tensor([places[name] for name in names], dtype=torch.int64))
        return normalize_scores(scores, **of_sides)

    rewrite_scores(path, out, change, advance, given=sides)
    return fewer
