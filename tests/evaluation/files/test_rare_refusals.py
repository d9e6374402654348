"""Rules of files that no command of tests/cli/refusals breaks, because their files are large or odd."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mpcs_torch.evaluation.files.formats import check_names, open_table, open_text
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.tables import distinct_texts
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
