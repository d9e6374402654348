"""Univariate sets of the UCR time-series archive, in the three layouts that the archive has had."""

from collections.abc import Sequence
from pathlib import Path

import torch

from mpcs_torch.trainer.data.splits import DataError, DataSplits, Split

LAYOUTS = ("tsv", "ts", "txt")
Series = list[tuple[str, list[float]]]
"""Label as written, and values, of each series."""


def load_ucr(root: Path, *, set: str) -> DataSplits:  # noqa: A002  # a key of the config
    """Load a set by its name in the archive: (N, steps, 1), unscaled; labels sorted and numbered from 0.

    Files are ``root/UCR/<set>/<set>_TRAIN.<layout>`` and ``_TEST``: tsv and txt hold the label first, ts (of
    timeseriesclassification.com) holds it last after a header.

    Raises:
        DataError: If a file is missing, a line is broken, a value is missing, or series differ in length.
    """
    train_path, test_path = _find(root / "UCR" / set, f"{set}_TRAIN"), _find(root / "UCR" / set, f"{set}_TEST")
    train, test = _read(train_path), _read(test_path)
    names = _sorted_labels([label for label, _ in train])
    unknown = [label for label, _ in test if label not in names]
    if unknown:
        raise DataError(f"{test_path}: label {unknown[0]} does not occur in the training file")
    steps = len(train[0][1])
    for path, part in ((train_path, train), (test_path, test)):
        lengths = {len(values) for _, values in part}
        if lengths != {steps}:
            raise DataError(f"{path}: series must have one length, {steps}, but have {sorted(lengths)}")
    return DataSplits(_split(train, names), _split(test, names), tuple(names))


def _find(folder: Path, stem: str) -> Path:
    for layout in LAYOUTS:
        if (folder / f"{stem}.{layout}").is_file():
            return folder / f"{stem}.{layout}"
    raise DataError(
        f"{folder} must hold {stem}.tsv, .ts or .txt, but has none of them "
        f"(mpcs data get ucr/{folder.name} downloads it)"
    )


def _read(path: Path) -> Series:
    lines = path.read_text(encoding="utf-8").splitlines()
    parse = _parse_ts if path.suffix == ".ts" else _parse_columns
    series = []
    in_header = path.suffix == ".ts"
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("#", "%")):
            continue
        if in_header:
            in_header = not line.strip().lower().startswith("@data")
            continue
        try:
            series.append(parse(line))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    if not series:
        raise DataError(f"{path}: holds no series")
    return series


def _parse_columns(line: str) -> tuple[str, list[float]]:
    """Parse a line with the label first and columns separated by tabs, commas or spaces."""
    label, *values = line.replace(",", " ").split()
    return _plain(label), _numbers(values)


def _parse_ts(line: str) -> tuple[str, list[float]]:
    """Parse a line with values separated by commas, then a colon and the label."""
    values, separator, label = line.strip().rpartition(":")
    if not separator or ":" in values:
        raise ValueError("must hold one dimension, a colon and a label")
    return _plain(label), _numbers(values.split(","))


def _plain(label: str) -> str:
    """Return a numeric label as a whole number (txt files write 1.0000000e+00), other labels unchanged."""
    try:
        number = float(label)
    except ValueError:
        return label.strip()
    return str(int(number)) if number.is_integer() else str(number)


def _numbers(values: Sequence[str]) -> list[float]:
    numbers = [float("nan") if value.strip() == "?" else float(value) for value in values]
    if any(number != number for number in numbers):
        raise ValueError("a value is missing, and nothing here fills it in")
    return numbers


def _sorted_labels(labels: Sequence[str]) -> list[str]:
    """Sort labels by number where all are numbers (-1 before 1, 9 before 10), else alphabetically."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct, key=float)
    except ValueError:
        return sorted(distinct)


def _split(series: Series, names: Sequence[str]) -> Split:
    inputs = torch.tensor([values for _, values in series], dtype=torch.float32).unsqueeze(-1)
    return Split(inputs, torch.tensor([names.index(label) for label, _ in series]))
