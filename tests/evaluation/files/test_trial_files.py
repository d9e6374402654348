"""Files of detection scores: their formats and their errors."""

import re
from pathlib import Path

import pytest
import torch
from pyarrow import csv, parquet

from mpcs_torch.evaluation.files import trial_table as table
from mpcs_torch.evaluation.files import trial_text as text
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.trial_readers import read_trials
from mpcs_torch.evaluation.files.trials import Trials

CSV = "id,score,label\na,0.5,1\nb,-inf,0\n\nc,2e-3,Target\nd, 1,nontarget\n"
TEXT = "0.5 target\n-inf nontarget\n\n2e-3 1\n1 0\n"
PAIRS = "a x 0.5\nb y -inf\nc z 2e-3\nd w 1\n"
LIST = "d w nontarget\na x target\nb y nontarget\nc z target\n"


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def read(path: Path, trials: Path | None = None) -> Trials:
    return read_trials(path, trials, lambda rows: None)


@pytest.mark.parametrize("rows", [1, 2, 2**16])
def test_all_formats_give_the_same_trials(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "ROWS", rows)
    monkeypatch.setattr(table, "ROWS", rows)
    read_rows: list[int] = []
    files = [
        (written(tmp_path, "s.csv", CSV), None),
        (written(tmp_path, "s.txt", TEXT), None),
        (written(tmp_path, "S.CSV", CSV.replace("\n", "\r\n")), None),
        (written(tmp_path, "bom.txt", "\ufeff" + TEXT), None),
        (written(tmp_path, "scores", PAIRS), written(tmp_path, "trials", LIST)),
        (tmp_path / "s.parquet", None),
    ]
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    for path, trials in files:
        scores, labels = read_trials(path, trials, read_rows.append)
        assert scores.tolist() == [0.5, -torch.inf, 0.002, 1.0]
        assert labels.tolist() == [True, False, True, False]
    assert sum(read_rows) == 24


@pytest.mark.parametrize(
    ("name", "text", "trials", "message"),
    [
        ("s.csv", "", None, "must have the columns ['score', 'label'], but has []"),
        (
            "s.csv",
            "a,label\n1,1\n",
            None,
            "must have the columns ['score', 'label'], but has ['a'",
        ),
        ("s.csv", "score,label\n", None, "s.csv: contains no rows"),
        ("s.csv", "score,label\n1,1\n2,0\nx,1\n", None, "s.csv, row 3, column score: must be a number, but is 'x'"),
        ("s.csv", "score,label\n1,1\nnan,0\n", None, "s.csv, row 2, column score: must be a number, but is 'nan'"),
        (
            "s.csv",
            "score,label\n1,1\n1,2\n",
            None,
            "row 2, column label: must be one of 1, target, true, 0, nontarget,",
        ),
        ("s.csv", "score,label\n1,1\n1\n", None, "s.csv, row 2, column label: is missing: the row has 1 of 2 values"),
        (
            "s.csv",
            "score,label\n1,1\n2,1\n",
            None,
            "must contain target and non-target trials, but contains no non-target",
        ),
        ("s.txt", "1 0\n", None, "must contain target and non-target trials, but contains no target"),
        (
            "s.txt",
            "1 0\n\n1 x y\n",
            None,
            "s.txt, row 3: must contain a score and a label (for two names and a score, give",
        ),
        ("s.txt", "a b 1\n", None, "give --trials FILE), but contains 3 fields"),
        ("s.txt", "a x 1\nc x 2\n", "a x target\n", "s.txt, row 2: c x is not in "),
        ("s.txt", "a x 1\na x 2\n", "a x target\n", "s.txt, row 2: a x appears twice"),
        ("s.txt", "a x 1\n", "a x target\nb y 0\n", "has no scores for 1 trials of "),
        ("s.txt", "a x 1\n", "a x target\na x 0\n", "trials, row 2: a x appears twice"),
        ("s.txt", "a x 1\n", "a x yes\n", "trials, row 1, column label: must be one of 1, target"),
        ("s.txt", "a x 1\n", "a target\n", "trials, row 1: must contain two names and a label, but contains 2 fields"),
        ("s.csv", "score,label\n1,1\n", "a x 1\n", "contains its own labels"),
    ],
)
def test_errors_name_the_file_and_the_place(
    name: str, text: str, trials: str | None, message: str, tmp_path: Path
) -> None:
    listed = None if trials is None else written(tmp_path, "trials", trials)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(written(tmp_path, name, text), listed)
