"""Files of predictions for tests, in several formats."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
from torch import Tensor

SUFFIXES = (".csv", ".parquet", ".npz", ".pt")


def write_predictions(
    path: Path,
    scores: Tensor,
    target: Tensor | None,
    names: Sequence[str],
    **others: Sequence[object],
) -> Path:
    """Write scores (N, C), and labels (N,) or soft labels (N, C), if there are any, in the format of the suffix.

    Tables have names and other columns, arrays have not.
    """
    arrays = {"preds": scores.contiguous()} | ({} if target is None else {"target": target})
    columns = {**others, **dict(zip(names, scores.T.tolist(), strict=True))}
    if target is not None and target.ndim == 1:
        columns["target"] = [names[label] for label in target.tolist()]
    elif target is not None:
        soft = [f"target_{name}" for name in names]
        columns |= dict(zip(soft, target.T.tolist(), strict=True))
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [[*columns], *zip(*columns.values(), strict=True)]
            )
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: array.numpy() for name, array in arrays.items()})  # type: ignore[arg-type]
    else:
        torch.save(arrays, path)
    return path
