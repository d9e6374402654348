"""Hold all rows of files of predictions in memory, for what needs them at once."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError
from mpcs_torch.evaluation.files.matched_rows import MatchedRows
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.functional.inputs.groups import Groups

MAX_VALUES = 10_000_000
"""Probabilities of all models together: 40 MB in memory, and 54 MB in a page."""


class HeldRows(NamedTuple):
    """The rows that several models predict."""

    class_names: list[str]
    probs: dict[str, Tensor]
    """By model: (N, C), float32."""
    target: Tensor
    """(N,), int64."""
    groups: dict[str, Groups]
    """By column."""


def hold_rows(opened: Mapping[str, Predictions], advance: Advance = lambda _: None) -> HeldRows:
    """Read files with the same rows, which `open_models` has opened.

    Files with soft labels, with decisions instead of probabilities, or with more than `MAX_VALUES` values are refused.
    """
    reading = next(iter(opened.values())).reading
    matched = MatchedRows(reading, identifier=reading.id_column if len(opened) > 1 else None)
    probs = dict[str, Tensor]()
    for name, predictions in opened.items():
        if predictions.decides:
            raise PredictionsError(predictions.path, "must have probabilities, but has decisions")
        parts, places, values = [], [], 0
        for chunk in predictions.chunks():
            if chunk.is_soft:
                raise PredictionsError(predictions.path, "must have one class for each row, but has soft labels")
            values += len(opened) * chunk.scores.numel()
            if values > MAX_VALUES:
                rule = f"must have at most {MAX_VALUES} probabilities, of all models together: draw fewer rows"
                raise PredictionsError(predictions.path, rule)
            places.append(matched.add(predictions, chunk)[0])
            parts.append(chunk.scores.float())
            advance(len(chunk.scores))
        if not parts:
            raise PredictionsError(predictions.path, "has no rows")
        matched.end(predictions)
        rows = torch.cat(parts)
        probs[name] = torch.empty_like(rows)
        probs[name][torch.cat(places)] = rows
    groups = {name: Groups(column.names, column.codes) for name, column in matched.columns.items()}
    return HeldRows(next(iter(opened.values())).class_names, probs, matched.labels, groups)
