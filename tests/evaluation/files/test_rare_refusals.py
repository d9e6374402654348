"""Rules of files that no command of tests/cli/refusals breaks, because their files are large, odd or not text."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from openpyxl import Workbook

from mpcs_torch.evaluation.confusion import read_confusion
from mpcs_torch.evaluation.files.formats import check_names, open_table, open_text
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.tables import distinct_texts
from mpcs_torch.io.untrusted_files import MAX_COLUMNS
from tests.refused import refused_file


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def arrays(path: Path, **columns: object) -> Path:
    np.savez(path.with_suffix(".npz"), **columns)
    return path.with_suffix(".npz")


def empty_sheet(path: Path) -> Path:
    Workbook().save(path)
    return path


LISTS = "target,p\n" + "0,[0.5 0.5]\n" * 200 + "1,[1]\n"
RARE: dict[str, Callable[[Path], object]] = {
    "number_of_columns": lambda path: check_names(path, ["a"] * (MAX_COLUMNS + 1)),
    "begins_as_text": lambda path: open_text(path, b"PAR1"),
    "not_so_deep": lambda path: open_table(written(path, "[" * 10**5)),
    "rows_in_sheet": lambda path: open_table(empty_sheet(path)),
    "array_of_numbers": lambda path: open_table(arrays(path, preds=np.ones((1, 1, 1)))),
    "different_values_at_most": lambda path: distinct_texts(
        open_table(written(path, "a,b\nc,1\nd,2\n")), "a", 1
    ),
    "table_of_classes": lambda path: read_confusion(arrays(path, counts=np.eye(2))),
    "list_as_in_row_1": lambda path: Predictions(
        written(path, LISTS), ReadOptions(classes=["0", "1"])
    ).rows(),
    "labels_of_one_score": lambda path: Predictions(
        written(path, "a,b\n.5,.1\n"), ReadOptions(score_columns=["a"]), needs_labels=False
    ),
    "length_of_value": lambda path: open_table(written(path, "x" * 200_000 + ",b\n")),
}
"""What breaks each rule, given the path of a file."""


@pytest.mark.parametrize("code", RARE)
def test_a_file_that_breaks_a_rare_rule_is_refused(tmp_path: Path, code: str) -> None:
    with refused_file(code):
        RARE[code](tmp_path / "file")
