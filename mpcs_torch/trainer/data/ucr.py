"""Univariate sets of the UCR time-series archive, in the three layouts that the archive has had."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from mpcs_torch.errors import has_control, printable, quoted
from mpcs_torch.io.untrusted_files import MOST_DATA_BYTES, FileRuleError, check_regular
from mpcs_torch.trainer.data.splits import DataError, DataSplits, Split

LAYOUTS = ("tsv", "ts", "txt")
MOST_EXACT = 2**53 - 1
"""Labels beyond it may become others as float64, so they are kept as text."""
MOST_VALUE = float(torch.finfo(torch.float32).max)
Series = list[tuple[str, list[float]]]
"""Label as written, and values, of each series."""


def load_ucr(root: Path, *, set: str) -> DataSplits:  # noqa: A002  # a key of the config
    """Load a set by its name in the archive: (N, steps, 1), unscaled; labels sorted and numbered from 0.

    Files are ``root/UCR/<set>/<set>_TRAIN.<layout>`` and ``_TEST``: tsv and txt hold the label first, ts (of
    timeseriesclassification.com) holds it last after a header.

    Raises:
        DataError: If the name is not one of the archive, a file is missing, a line is broken, a value is missing or not
            finite, or series differ in length.
    """
    check_name(set)
    train_path, test_path = _find(root / "UCR" / set, f"{set}_TRAIN"), _find(root / "UCR" / set, f"{set}_TEST")
    train, test = _read(train_path), _read(test_path)
    names = _sorted_labels([label for label, _ in train])
    places = {name: place for place, name in enumerate(names)}
    unknown = next((label for label, _ in test if label not in places), None)
    if unknown is not None:
        raise _error(test_path, f"label {quoted(unknown)[1:-1]} does not occur in the training file")
    steps = len(train[0][1])
    for path, part in ((train_path, train), (test_path, test)):
        lengths = {len(values) for _, values in part}
        if lengths != {steps}:
            raise _error(path, f"series must have one length, {steps}, but have {quoted(sorted(lengths))}")
    return DataSplits(_split(train, places), _split(test, places), tuple(names))


def check_name(name: str) -> None:
    """Refuse a name that would be another folder.

    Raises:
        DataError: If it has other characters than the names of the archive.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise DataError(f"names of UCR sets have letters, digits, - and _, but got {quoted(name)}")


def _error(path: Path, problem: str) -> DataError:
    return DataError(f"{printable(str(path))}: {problem}")


def _find(folder: Path, stem: str) -> Path:
    for layout in LAYOUTS:
        if (folder / f"{stem}.{layout}").is_file():
            return folder / f"{stem}.{layout}"
    hint = f"mpcs data get ucr/{folder.name} downloads it"
    raise DataError(f"{folder} must hold {stem}.tsv, .ts or .txt, but has none of them ({hint})")


def _read(path: Path) -> Series:
    try:
        check_regular(path, most_bytes=MOST_DATA_BYTES)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileRuleError, UnicodeDecodeError) as error:
        raise _error(path, str(error) if isinstance(error, FileRuleError) else "must be UTF-8 text") from None
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
            raise DataError(f"{printable(str(path))}:{number}: {error}") from None
    if not series:
        raise _error(path, "holds no series")
    return series


def _parse_columns(line: str) -> tuple[str, list[float]]:
    """Parse a line with the label first and columns separated by tabs, commas or spaces."""
    label, *values = line.replace(",", " ").split() or [""]
    return _plain(label), _numbers(values)


def _parse_ts(line: str) -> tuple[str, list[float]]:
    """Parse a line with values separated by commas, then a colon and the label."""
    values, separator, label = line.strip().rpartition(":")
    if not separator or ":" in values:
        raise ValueError("must hold one dimension, a colon and a label")
    return _plain(label), _numbers(values.split(","))


def _plain(label: str) -> str:
    """Return a numeric label as a whole number (txt files write 1.0000000e+00), other labels unchanged."""
    if not label.strip() or has_control(label):
        raise ValueError(f"must have a label without control characters, but it is {quoted(label)}")
    try:
        number = float(label)
    except ValueError:
        return label.strip()
    if abs(number) > MOST_EXACT:
        return label.strip()
    return str(int(number)) if number.is_integer() else str(number)


def _numbers(values: Sequence[str]) -> list[float]:
    numbers = []
    for value in values:
        try:
            numbers.append(float("nan" if value.strip() == "?" else value))
        except ValueError:
            raise ValueError(f"could not convert string to float: {quoted(value)}") from None
    if not numbers or any(number != number for number in numbers):
        raise ValueError("a value is missing, and nothing here fills it in")
    if not all(abs(number) <= MOST_VALUE for number in numbers):
        raise ValueError("a value is not finite in float32")
    return numbers


def _sorted_labels(labels: Sequence[str]) -> list[str]:
    """Sort labels by number where all are numbers (-1 before 1, 9 before 10), else alphabetically."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct, key=float)
    except ValueError:
        return sorted(distinct)


def _split(series: Series, places: Mapping[str, int]) -> Split:
    inputs = torch.tensor([values for _, values in series], dtype=torch.float32).unsqueeze(-1)
    return Split(inputs, torch.tensor([places[label] for label, _ in series]))
