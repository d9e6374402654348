"""Write predictions to files that the readers of this package read."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.files import replace_whole
from mpcs_torch.scoring.arrays import LABELS, SCORES
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.column_roles import LABEL
from mpcs_torch.scoring.csv_file import write_csv_rows

SUFFIXES = (".csv", ".npz", ".pt")


def write_predictions(path: Path, scores: Tensor, target: Tensor, class_names: Sequence[str]) -> None:
    """Write scores (N, C) and labels (N,) in the format that the suffix names; labels (N, 0) are left out.

    Raises:
        PredictionsError: If the suffix is not one of `SUFFIXES`.
    """
    scores = scores.contiguous()  # the readers read arrays row by row
    if path.suffix == ".csv":
        replace_whole(path, lambda file: _write_csv(file, scores, target, class_names))
    elif path.suffix == ".npz":
        replace_whole(path, lambda file: _write_npz(file, scores, target))
    elif path.suffix == ".pt":
        labels = {LABELS: target} if target.ndim == 1 else {}
        replace_whole(path, lambda file: torch.save({SCORES: scores, **labels}, file))
    else:
        raise PredictionsError(path, f"must be one of {', '.join(SUFFIXES)}")


def _write_npz(file: BinaryIO, scores: Tensor, target: Tensor) -> None:
    if target.ndim == 1:
        np.savez(file, preds=scores.numpy(), target=target.numpy())
    else:
        np.savez(file, preds=scores.numpy())


def _write_csv(file: BinaryIO, scores: Tensor, target: Tensor, class_names: Sequence[str]) -> None:
    is_labelled = target.ndim == 1
    write_csv_rows(file, [[*class_names, *([LABEL] if is_labelled else [])]])
    for start in range(0, len(scores), 2**14):
        rows: list[list[object]] = [list(row) for row in scores[start : start + 2**14].tolist()]
        labels = target[start : start + 2**14].tolist() if is_labelled else []
        for row, label in zip(rows, labels, strict=False):
            row.append(class_names[label])
        write_csv_rows(file, rows)
