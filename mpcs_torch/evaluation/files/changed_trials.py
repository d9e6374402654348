"""Copy files of trials with changed scores, such as scores that a cohort normalises."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.reading import Advance, PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.row_ids import RowIds
from mpcs_torch.evaluation.files.tables import ReadColumns, listed
from mpcs_torch.evaluation.files.trial_roles import PAIR, find_names, find_roles, in_words
from mpcs_torch.evaluation.files.trials import MISSING, read_columns
from mpcs_torch.evaluation.files.write import copy_table
from mpcs_torch.functional.detection.normalization import (
    CohortStatistics,
    SameScoresError,
    cohort_statistics,
    normalize_scores,
)

NormalizationMethod = Literal["z", "t", "s", "adaptive-s"]
SIDES: dict[str, Sequence[str]] = {"z": PAIR[:1], "t": PAIR[1:], "s": PAIR, "adaptive-s": PAIR}
"""The names (enrollment, test, or both) whose cohort scores each normalisation method uses."""


def read_cohort(path: Path, advance: Advance, *, top: int | None = None) -> tuple[RowIds, CohortStatistics, int]:
    """Read the scores of enrolments or tests against a cohort (reference names); return statistics for each name.

    With a header, the column ``name`` has the names of enrolments or tests. Without a header, each line has such a
    name, a name of the cohort and a score. With ``top``, only the ``top`` highest scores of each name are used. Scores
    must be finite, and at least two of the scores used for a name must differ.

    Returns:
        The names, their statistics in the same order, and the number of names with fewer than ``top`` scores. For
        these names, all scores are used.
    """
    table = open_table(path)
    roles, column = find_roles(table, ReadOptions(), has_label=None), "name" if table.has_names else table.names[0]
    table.check_columns([column])
    read = read_columns(table, roles._replace(label=""), [], [(column,)], advance)
    if not (is_finite := np.isfinite(read.scores)).all():
        row = int(is_finite.argmin())
        raise PredictionsError(path, f"must be finite, but is {read.scores[row]}", row=row + 1, column=roles.score)
    encoded = read.ids([column]).ids.dictionary_encode()
    preds, codes, names = torch.from_numpy(read.scores), torch.tensor(encoded.indices.to_numpy()), encoded.dictionary
    try:
        statistics = cohort_statistics(preds, codes, num_names=len(names), top=top)
    except SameScoresError as error:
        highest = "" if top is None else f" among its {top} highest"
        problem = f"must have two scores that differ{highest} for {quoted(names[error.name].as_py())}"
        raise PredictionsError(path, problem) from None
    return RowIds(path, names), statistics, int((codes.bincount() < (top or 0)).sum())


def rewrite_scores(
    path: Path,
    out: Path,
    change: Callable[..., Tensor],
    options: ReadOptions,
    advance: Advance,
    *,
    sides: Sequence[str] = (),
) -> str:
    """Copy a file of trials with changed scores by `copy_table`; return a sentence on how the file was read.

    ``change`` takes the scores (n,), float64, and the `RowIds` of each of ``sides`` ("enrollment", "test"), and returns
    the new scores (n,). The file need not have labels.
    """
    table = open_table(path)
    roles = find_roles(table, options, has_label=None)
    naming = find_names(table, roles, options, is_matched=False)
    named_pair = next((names for names in naming if len(names) == 2), ())
    pair = named_pair if sides else ()
    if sides and not pair:
        rule = "must name enrollment and test: name two columns with --id-column A,B"
        raise PredictionsError(path, f"{rule}; it has {listed(table.names)}")
    columns = [pair[PAIR.index(side)] for side in sides]

    def changed(read: ReadColumns) -> dict[str, Any]:
        scores = torch.from_numpy(read.numbers(roles.score))
        if scores.isnan().any():
            raise read.error(MISSING, int(scores.isnan().nonzero()[0]), roles.score)
        names = [RowIds.of(read, [name]) for name in columns]
        advance(read.rows)
        return {roles.score: change(-scores if options.lower_is_target else scores, *names).numpy()}

    usual = {roles.score: "score", roles.label: "label", **dict(zip(named_pair, PAIR, strict=False))}
    copy_table(table, out, changed, names=usual)
    others = [name for name in table.names if name not in (roles.score, *pair)]
    return in_words(table, roles.score, pair, [], others, options)


def normalize_trials(
    path: Path,
    out: Path,
    cohort: Path,
    method: NormalizationMethod,
    options: ReadOptions,
    advance: Advance,
    *,
    top: int | None = None,
) -> tuple[str, int]:
    """Copy a file of trials with normalised scores, as `rewrite_scores` does. ``cohort`` is a file for `read_cohort`.

    The method "z" uses the cohort scores of the enrolment, "t" those of the test, "s" and "adaptive-s" those of both.
    "adaptive-s" needs ``top``: only the ``top`` highest cohort scores of each name are used.

    Returns:
        A sentence on how the file was read, and the number of names that have fewer than ``top`` cohort scores.
    """
    cohort_names, statistics, fewer = read_cohort(cohort, advance, top=top)

    def change(scores: Tensor, *columns: RowIds) -> Tensor:
        places = [torch.from_numpy(names.all_among(cohort_names)).long() for names in columns]
        return normalize_scores(scores, **dict(zip(SIDES[method], map(statistics.of, places), strict=True)))

    return rewrite_scores(path, out, change, options, advance, sides=SIDES[method]), fewer
