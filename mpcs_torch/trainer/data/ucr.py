"""Univariate sets of the UCR time-series archive: tsv files of the archive, or ts files of its web site."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import DataError, printable, quoted, shown
from mpcs_torch.trainer.data.splits import DataSplits, Split


def load_ucr(root: Path, *, set: str) -> DataSplits:  # noqa: A002  # a key of the config
    """Load a set by its name in the archive: (N, steps, 1), unscaled; labels sorted and numbered from 0.

    Files are ``root/UCR/<set>/<set>_TRAIN.tsv`` and ``_TEST.tsv``, which hold the label first, or ``.ts``, which hold
    it last after a header.

    Raises:
        DataError: If a file is missing, a value is missing or not finite, or series differ in length.
    """
    parts = [_read(root / "UCR" / set, f"{set}_{part}") for part in ("TRAIN", "TEST")]
    (labels, values), (test_labels, test_values) = parts
    if unknown := sorted({*test_labels} - {*labels}):
        raise DataError(f"UCR set {quoted(set)}: labels {quoted(unknown)} do not occur in the training file")
    if values.shape[1] != test_values.shape[1]:
        raise DataError(f"UCR set {quoted(set)}: training and test series must have one length")
    names = _sorted(labels)
    numbers = {name: number for number, name in enumerate(names)}
    train, test = (Split(values, torch.tensor([numbers[label] for label in labels])) for labels, values in parts)
    return DataSplits(train, test, tuple(names))


def _read(folder: Path, stem: str) -> tuple[list[str], Tensor]:
    """Read the label of each series as it is written, and the values, (N, steps, 1), float32."""
    path = next((path for suffix in ("tsv", "ts") if (path := folder / f"{stem}.{suffix}").is_file()), None)
    if path is None:
        hint = f"mpcs data get ucr/{folder.name} downloads it"
        raise DataError(f"{printable(str(folder))} must hold {stem}.tsv or .ts, but has none of them ({hint})")
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if path.suffix == ".ts":
            rows = [line.rpartition(":") for line in lines if line[0] not in "#@"]
            labels, series = [label for *_, label in rows], [values.split(",") for values, *_ in rows]
        else:
            labels, series = [line.split()[0] for line in lines], [line.split()[1:] for line in lines]
        values = torch.from_numpy(np.array(series, dtype=np.float64)).float()
        if values.ndim != 2 or not values.numel() or not values.isfinite().all():
            raise ValueError(f"must hold finite numbers (N, steps), but has {tuple(values.shape)} or a missing value")
    except ValueError as error:
        raise DataError(f"{printable(str(path))}: {shown(str(error))}") from None
    return labels, values.unsqueeze(-1)


def _sorted(labels: list[str]) -> list[str]:
    """Sort different labels by number where all are numbers (-1 before 1, 9 before 10), else alphabetically."""
    try:
        return sorted({*labels}, key=float)
    except ValueError:
        return sorted({*labels})
