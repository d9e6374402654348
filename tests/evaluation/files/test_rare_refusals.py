"""Rules of files that no command of tests/cli/refusals breaks, because their files are large or odd."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.files.formats import check_names, open_table, open_text
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.tables import Argument, ReadColumns, distinct_texts
from mpcs_torch.io.untrusted_files import MAX_COLUMNS
from tests.refused import refused_file

ONE_SCORE = ReadOptions(score_columns=["a"])
RARE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "number_of_columns": ("", lambda path: check_names(path, ["a"] * (MAX_COLUMNS + 1))),
    "begins_as_text": ("", lambda path: open_text(path, b"PAR1")),
    "length_of_value": ("x" * 200_000 + ",b\n", open_table),
    "different_values_at_most": (
        "a,b\nc,1\nd,2\n",
        lambda path: distinct_texts(open_table(path), "a", 1),
    ),
    "utf_8": ("label,pr\udce9d\na,a\n", open_table),
    "one_probability, row 2, column score": (
        "label,score\n1,0.9\n0,-0.2\n",
        lambda path: Predictions(path).rows(),
    ),
    "rows_below_header": (
        "inst#,actual,predicted,error,distribution\n",  # as of Weka
        lambda path: Predictions(path).rows(),
    ),
    "labels_of_one_score": (
        "a,b\n.5,.1\n",
        lambda path: Predictions(path, ONE_SCORE, needs_labels=False),
    ),
}
"""A text that breaks each rule, and what reads it."""


@pytest.mark.parametrize("code", RARE)
def test_a_file_that_breaks_a_rare_rule_is_refused(tmp_path: Path, code: str) -> None:
    text, read = RARE[code]
    (tmp_path / "file").write_text(text, errors="surrogateescape")
    with refused_file(code):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (InvalidValueError("finite", "scores", 7.0, sample=1), "finite, row 3, column a"),
        (
            InvalidValueError("finite", "costs", 7.0, sample=0, column=0),
            "finite, row 1, column a",
        ),
        (
            InvalidValueError("finite", "costs", 7.0, sample=0, column=1),
            "finite, row 1, column b",
        ),
        (  # a value that is computed from several columns
            InvalidValueError("finite", "costs", 7.0, sample=0, column=2),
            "finite, row 1, column b",
        ),
        (InvalidValueError("finite", "costs", 7.0, sample=0), "finite, row 1"),
        (InvalidValueError("finite", "scores", 7.0), "finite"),
        (InvalidValueError("finite", "weights", 7.0, sample=1), "finite"),
    ],
)
def test_an_error_about_a_value_names_its_row_and_column_in_the_file(
    error: InvalidValueError, refusal: str
) -> None:
    read = ReadColumns(Path("p.csv"), {}, np.array([True, False, True]))
    arguments = {"scores": Argument(["a"]), "costs": Argument(["a", "b"])}
    with refused_file(f"p.csv: {refusal}") as refused, read.naming(arguments):
        raise error
    in_file: Any = refused.value
    assert (in_file.row is None) == ("row" not in refusal)
    assert (in_file.column is None) == ("column" not in refusal)
