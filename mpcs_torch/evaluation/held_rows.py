"""Read all rows of one or several files of predictions into memory."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.evaluation.files.file_errors import Advance, PredictionsError
from mpcs_torch.evaluation.files.matched_rows import MatchedRows
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.functional.inputs.groups import Groups

MAX_VALUES = 10_000_000
"""The maximum number of probabilities of all models together: 40 MB in memory, and 54 MB in an HTML page."""


class HeldRows(NamedTuple):
    """The rows of files in memory: their labels and groups, and the probabilities of each model."""

    class_names: list[str]
    probs: dict[str, Tensor]
    """The probabilities of each model, (N, C), float32."""
    target: Tensor
    """(N,), int64: the labels."""
    groups: dict[str, Groups]
    """The groups of the rows, by column."""


def hold_rows(opened: Mapping[str, Predictions], advance: Advance = lambda _: None) -> HeldRows:
    """Read all rows of files that `open_models` has opened; the files must have the same rows.

    Raises:
        PredictionsError: If a file has soft labels or decisions, or there are more than `MAX_VALUES` probabilities.
    """
    first = next(iter(opened.values()))
    matched, probs = MatchedRows(first, is_alone=len(opened) == 1), {}
    for name, predictions in opened.items():
        if predictions.decides:
            raise PredictionsError(predictions.path, "must have probabilities, but has decisions")
        [rows] = matched.rows_of(predictions)
        if rows.target.ndim == 2:
            raise PredictionsError(predictions.path, "must have one class for each row, but has soft labels")
        if len(opened) * rows.probs.numel() > MAX_VALUES:
            rule = f"must have at most {MAX_VALUES} probabilities, of all models together: draw fewer rows"
            raise PredictionsError(predictions.path, rule)
        probs[name] = rows.probs.float()
        advance(len(rows.ids))
    return HeldRows(first.class_names, probs, rows.target, matched.columns)
