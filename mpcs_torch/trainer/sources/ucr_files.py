"""Univariate sets of the UCR time-series archive, in the three layouts that the archive has had."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpcs_torch.errors import DataError, has_control, printable, quoted
from mpcs_torch.io.untrusted_files import MOST_DATA_BYTES, FileRuleError, check_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAYOUTS = ("tsv", "ts", "txt")
MOST_EXACT = 2**53 - 1
"""Labels beyond it may become others as float64, so they are kept as text."""
MOST_VALUE = float(np.finfo(np.float32).max)
Series = list[tuple[str, list[float]]]
"""Label as written, and values, of each series."""


class Part(NamedTuple):
    """The series of the training file, or of that for tests."""

    inputs: "NDArray[np.float32]"
    """(N, steps, 1)."""
    labels: "NDArray[np.int64]"
    """(N,)."""


class UcrSet(NamedTuple):
    """A set of the archive, unscaled; labels are sorted and numbered from 0."""

    train: Part
    test: Part
    class_names: tuple[str, ...]


def read_ucr(root: Path, name: str) -> UcrSet:
    """Read a set by its name in the archive.

    Files are ``root/UCR/<name>/<name>_TRAIN.<layout>`` and ``_TEST``: tsv and txt hold the label first, ts (of
    timeseriesclassification.com) holds it last after a header.

    Raises:
        DataError: If the name is not one of the archive, a file is missing, a line is broken, a value is missing or not
            finite, or series differ in length.
    """
    check_name(name)
    train_path, test_path = _find(root / "UCR" / name, f"{name}_TRAIN"), _find(root / "UCR" / name, f"{name}_TEST")
    train, test = _read(train_path), _read(test_path)
    names = _sorted_labels([label for label, _ in train])
    places = {label: place for place, label in enumerate(names)}
    unknown = next((label for label, _ in test if label not in places), None)
    if unknown is not None:
        raise _error(test_path, f"label {quoted(unknown)[1:-1]} does not occur in the training file")
    steps = len(train[0][1])
    for path, part in ((train_path, train), (test_path, test)):
        lengths = {len(values) for _, values in part}
        if lengths != {steps}:
            raise _error(path, f"series must have one length, {steps}, but have {quoted(sorted(lengths))}")
    return UcrSet(_part(train, places), _part(test, places), tuple(names))


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


def _part(series: Series, places: Mapping[str, int]) -> Part:
    inputs = np.array([values for _, values in series], dtype=np.float32)[:, :, np.newaxis]
    return Part(inputs, np.array([places[label] for label, _ in series], dtype=np.int64))
