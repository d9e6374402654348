"""Files of predictions, by their suffix; every value is checked on its way in."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.scoring.arrays import ArrayFile
from mpcs_torch.scoring.chunks import Chunk, PredictionsError
from mpcs_torch.scoring.columns import ColumnFile

SUFFIXES = {".npy": ArrayFile, ".npz": ArrayFile, ".pt": ArrayFile, ".csv": ColumnFile, ".parquet": ColumnFile}
SUM_TOLERANCE = 1e-3
"""Forgives printed decimals, as the metrics do."""


class Predictions:
    """The rows of a file as probabilities and labels.

    Args:
        path: ``.npz`` or ``.pt`` with ``preds`` (N, C) and ``target``; ``.npy`` with scores (N, C); ``.csv`` or
            ``.parquet`` with a column for each class, and ``target`` or ``target_NAME`` columns.
        target: The labels of an ``.npy`` file: (N,) integer classes, or (N, C) degrees of truth.
        from_logits: Whether scores are logits rather than probabilities.
        class_names: Names that a ``target`` column may hold instead of class indices.

    Raises:
        PredictionsError: If the file cannot be read; it names row and column where there is one.
    """

    def __init__(
        self, path: Path, *, target: Path | None = None, from_logits: bool, class_names: Sequence[str] | None = None
    ) -> None:
        if path.suffix not in SUFFIXES:
            raise PredictionsError(path, f"must be one of {', '.join(SUFFIXES)}")
        if SUFFIXES[path.suffix] is ColumnFile and target is not None:
            raise PredictionsError(path, "holds its labels itself: --target goes with npy files")
        self.path, self.from_logits = path, from_logits
        self._source = ArrayFile(path, target) if SUFFIXES[path.suffix] is ArrayFile else ColumnFile(path, class_names)
        self.columns = self._source.columns
        if class_names is not None and len(class_names) != len(self.columns):
            problem = f"has scores for {len(self.columns)} classes, but the concern is of {len(class_names)}"
            raise PredictionsError(path, problem)

    def chunks(self) -> Iterator[Chunk]:
        """Rows as probabilities (n, C), and labels (n,) or degrees of truth (n, C); once.

        Raises:
            PredictionsError: At the first value that breaks a rule.
        """
        for first, scores, target in self._source.chunks():
            if not scores.is_floating_point():
                raise PredictionsError(self.path, f"the scores must be floating point, but are {scores.dtype}")
            wide = scores.double()
            probs = wide.softmax(dim=1) if self.from_logits else wide
            self._check_scores(wide, probs, first)
            yield Chunk(first, probs, self._checked_target(target, first))

    def _check_scores(self, scores: Tensor, probs: Tensor, first: int) -> None:
        bad = scores.isnan() | (scores == torch.inf)
        bad |= torch.zeros_like(bad) if self.from_logits else (scores < 0) | (scores > 1 + SUM_TOLERANCE)
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            rule = "a logit" if self.from_logits else "a probability (for logits pass --logits)"
            problem = f"must be {rule}, but is {scores[row, column]:g}"
            raise PredictionsError(self.path, problem, row=first + row, column=self.columns[column])
        off = ~((probs.sum(dim=1) - 1).abs() <= SUM_TOLERANCE)
        if off.any():
            row = int(off.nonzero()[0])
            problem = f"the probabilities must sum to 1, but sum to {probs[row].sum():g} (for logits pass --logits)"
            raise PredictionsError(self.path, problem, row=first + row)

    def _checked_target(self, target: Tensor, first: int) -> Tensor:
        if target.ndim == 2:
            bad = ~((target >= 0) & (target <= 1))
            if bad.any():
                row, column = bad.nonzero()[0].tolist()
                problem = f"the degree of truth must be from 0 to 1, but is {target[row, column]:g}"
                raise PredictionsError(self.path, problem, row=first + row, column=self.columns[column])
            return target.double()
        if target.is_floating_point() or target.dtype == torch.bool:
            raise PredictionsError(self.path, f"the labels must be integers, but are {target.dtype}")
        labels = target.long()
        bad = (labels < 0) | (labels >= len(self.columns))
        if bad.any():
            row = int(bad.nonzero()[0])
            problem = f"the label must be from 0 to {len(self.columns) - 1}, but is {labels[row]}"
            raise PredictionsError(self.path, problem, row=first + row)
        return labels
