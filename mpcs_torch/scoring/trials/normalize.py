"""Normalise the scores of a file by those of a cohort."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.functional.detection.normalization import normalize_scores
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.trials.cohort import read_cohort
from mpcs_torch.scoring.trials.rewrite import rewrite_scores
from mpcs_torch.scoring.trials.text import PAIR

NormalizationMethod = Literal["z", "t", "s", "adaptive-s"]
SIDES: dict[str, Sequence[str]] = {"z": PAIR[:1], "t": PAIR[1:], "s": PAIR, "adaptive-s": PAIR}
"""Whose cohort scores each method uses."""


def normalize_trials(
    path: Path,
    out: Path,
    cohort: Path,
    method: NormalizationMethod,
    advance: Callable[[int], None],
    *,
    top: int | None = None,
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
        given = {}
        for side, names in zip(sides, columns, strict=True):
            missing = next((name for name in names if name not in places), None)
            if missing is not None:
                raise PredictionsError(cohort, f"has no scores for {quoted(missing)}, which is in {side} of {path}")
            given[side] = statistics.of(torch.tensor([places[name] for name in names], dtype=torch.int64))
        return normalize_scores(scores, **given)

    rewrite_scores(path, out, change, advance, given=sides)
    return fewer
