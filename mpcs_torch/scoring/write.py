"""Write scores to files that the readers of this package read."""

import csv
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.files import replace_whole
from mpcs_torch.scoring.arrays import LABELS, SCORES
from mpcs_torch.scoring.chunks import PredictionsError, lines_of, reading
from mpcs_torch.scoring.columns import LABEL
from mpcs_torch.scoring.csv_file import CsvFile
from mpcs_torch.scoring.trials.text import numbered_rows, parse_scores, refuse_binary, split_lines

SUFFIXES = (".csv", ".npz", ".pt")
Rows = Iterator[tuple[Sequence[int], list[list[str]]]]


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


def rewrite_scores(path: Path, out: Path, change: Callable[[Tensor], Tensor], advance: Callable[[int], None]) -> None:
    """Copy a file of trials with changed scores; labels, names and further columns stay, and none is needed.

    Args:
        path: A csv file with a column ``score``, or a text file with one trial on each line: a score, score and label,
            or two names and a score.
        out: The file to write, in the same format.
        change: Maps scores (n,), float64, to new ones.
        advance: Called with the number of rows after each batch.

    Raises:
        PredictionsError: If the file cannot be read, a score is not a number, or ``out`` names another format.
    """
    is_csv = path.suffix.lower() == ".csv"
    if is_csv != (out.suffix.lower() == ".csv"):
        rule = "must end in .csv" if is_csv else "must not end in .csv"
        raise PredictionsError(out, f"{rule}, because the format is that of {path}")
    replace_whole(out, lambda file: _copy(file, path, change, advance, is_csv=is_csv))


def _write_npz(file: BinaryIO, scores: Tensor, target: Tensor) -> None:
    if target.ndim == 1:
        np.savez(file, preds=scores.numpy(), target=target.numpy())
    else:
        np.savez(file, preds=scores.numpy())


def _write_csv(file: BinaryIO, scores: Tensor, target: Tensor, class_names: Sequence[str]) -> None:
    is_labelled = target.ndim == 1
    _write_rows(file, [[*class_names, *([LABEL] if is_labelled else [])]], is_csv=True)
    for start in range(0, len(scores), 2**14):
        rows: list[list[object]] = [list(row) for row in scores[start : start + 2**14].tolist()]
        labels = target[start : start + 2**14].tolist() if is_labelled else []
        for row, label in zip(rows, labels, strict=False):
            row.append(class_names[label])
        _write_rows(file, rows, is_csv=True)


def _copy(
    file: BinaryIO, path: Path, change: Callable[[Tensor], Tensor], advance: Callable[[int], None], *, is_csv: bool
) -> None:
    with reading(path):
        refuse_binary(path)
        header, place, batches = _csv_rows(path) if is_csv else _text_rows(path)
        _write_rows(file, header, is_csv=is_csv)
        for rows, held in batches:
            scores = torch.tensor(parse_scores(path, rows, [fields[place] for fields in held]), dtype=torch.float64)
            for fields, score in zip(held, change(scores).tolist(), strict=True):
                fields[place] = repr(score)
            _write_rows(file, held, is_csv=is_csv)
            advance(len(held))


def _csv_rows(path: Path) -> tuple[list[list[str]], int, Rows]:
    """Return the header, the place of the score, and the rows."""
    file = CsvFile(path)
    if "score" not in file.names:
        raise PredictionsError(
            path, f"must begin with a header that contains score, but begins with {quoted(file.names)}"
        )
    return [file.header], file.names.index("score"), numbered_rows(file.rows())


def _text_rows(path: Path) -> tuple[list[list[str]], int, Rows]:
    """Return no header, the place of the score, and the lines."""
    with path.open(encoding="utf-8-sig") as file:
        count = next((len(fields) for line in lines_of(file, path) if (fields := line.split())), 0)
    if count not in (1, 2, 3):
        raise PredictionsError(path, f"must contain 1 to 3 fields on each line, but begins with {count}")
    return [], 2 if count == 3 else 0, split_lines(path, count, f"{count} fields as its first line does")


def _write_rows(file: BinaryIO, rows: Sequence[Sequence[object]], *, is_csv: bool) -> None:
    text = StringIO()
    if is_csv:
        csv.writer(text, lineterminator="\n").writerows(rows)
    else:
        text.writelines(f"{' '.join(map(str, row))}\n" for row in rows)
    file.write(text.getvalue().encode())
