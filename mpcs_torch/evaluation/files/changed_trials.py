"""Copy files of trials with changed scores, such as calibrated ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.facts import Facts
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import Advance, ReadOptions
from mpcs_torch.evaluation.files.reading_choice import choose
from mpcs_torch.evaluation.files.row_ids import PAIR, trial_ids
from mpcs_torch.evaluation.files.tables import ReadColumns
from mpcs_torch.evaluation.files.trials import in_words
from mpcs_torch.evaluation.files.write import copy_table


def rewrite_scores(
    path: Path,
    out: Path,
    change: Callable[[Tensor], Tensor],
    options: ReadOptions,
    advance: Advance,
) -> str:
    """Copy a file of trials with changed scores by `copy_table`; return a sentence on how the file was read.

    ``change`` takes the scores (n,), float64, and returns the new scores (n,). The file need not have labels.
    """
    table = open_table(path)
    facts = Facts(table, options, needs_labels=False, of_trials=True)
    score = choose(facts, None).scores[0]
    naming = trial_ids(table, [score], options)
    named_pair = next((names for names in naming if len(names) == 2), ())

    def changed(read: ReadColumns) -> dict[str, Any]:
        scores = torch.from_numpy(read.numbers(score))
        if scores.isnan().any():
            raise read.error(Rule("missing_score"), int(scores.isnan().nonzero()[0]), score)
        advance(read.rows)
        return {score: change(-scores if options.lower_is_target else scores).numpy()}

    usual = {score: "score", **dict(zip(named_pair, PAIR, strict=False))}
    copy_table(table, out, changed, names=usual)
    others = [name for name in table.names if name != score]
    return in_words(table, score, (), [], others, options)
