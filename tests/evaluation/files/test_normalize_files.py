"""Scores of files normalised by a cohort, against the formula in numpy."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

from mpcs_torch.evaluation.files.changed_trials import normalize_trials, rewrite_scores
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions

COHORT = {"a": [1.0, 3.0, 2.5], "b": [0.0, 4.0, -1.0], "x": [5.0, 6.0, 9.0], "y": [-2.0, 2.0, 1.0]}
TRIALS = [("a", "x", 1.5), ("b", "x", -0.5), ("b", "y", 2.0)]
SCORES = "".join(f"{one} {other} {score}\n" for one, other, score in TRIALS)


@pytest.fixture
def cohort(tmp_path: Path) -> Path:
    lines = [f"{name} c{place} {score}\n" for name, scores in COHORT.items() for place, score in enumerate(scores)]
    (tmp_path / "cohort.txt").write_text("".join(lines[::2] + lines[1::2]))
    (tmp_path / "cohort.csv").write_text("name,cohort,score\n" + "".join(lines).replace(" ", ","))
    return tmp_path / "cohort.txt"


def normalized(path: Path, cohort: Path, method: Any, top: int | None = None) -> Path:
    out = path.with_name(f"out-{path.name}")
    normalize_trials(path, out, cohort, method, ReadOptions(), lambda rows: None, top=top)
    return out


def expected(sides: Sequence[int], top: int) -> list[float]:
    found = []
    for trial in TRIALS:
        highest = [sorted(COHORT[str(trial[side])])[-top:] for side in sides]
        found.append(np.mean([(trial[2] - np.mean(scores)) / np.std(scores) for scores in highest]))
    return [float(value) for value in found]


@pytest.mark.parametrize("cohort_name", ["cohort.txt", "cohort.csv"])
@pytest.mark.parametrize(
    ("method", "top", "sides"),
    [("z", None, [0]), ("t", None, [1]), ("s", None, [0, 1]), ("adaptive-s", 2, [0, 1]), ("adaptive-s", 300, [0, 1])],
)
def test_text_is_normalised(
    tmp_path: Path, cohort: Path, cohort_name: str, method: str, top: int | None, sides: list[int]
) -> None:
    (tmp_path / "s.txt").write_text(SCORES)
    lines = normalized(tmp_path / "s.txt", cohort.with_name(cohort_name), method, top).read_text().splitlines()
    assert [line.split()[:2] for line in lines] == [list(trial[:2]) for trial in TRIALS]
    assert [float(line.split()[2]) for line in lines] == pytest.approx(expected(sides, top or 3))


def test_tables_keep_their_other_columns(tmp_path: Path, cohort: Path) -> None:
    rows = [f"{place},{other},{score},{one},1\n" for place, (one, other, score) in enumerate(TRIALS)]
    (tmp_path / "s.csv").write_text("".join(["year,test,score,enrollment,label\n", *rows]))
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    lines = normalized(tmp_path / "s.csv", cohort, "s").read_text().splitlines()
    assert lines[0] == "year,test,score,enrollment,label"
    assert [line.split(",")[3:] for line in lines[1:]] == [["a", "1"], ["b", "1"], ["b", "1"]]
    found = parquet.read_table(normalized(tmp_path / "s.parquet", cohort, "s"))
    assert found["score"].to_pylist() == [float(line.split(",")[2]) for line in lines[1:]]
    assert found["score"].to_pylist() == pytest.approx(expected([0, 1], 3))
    assert found.drop(["score"]) == parquet.read_table(tmp_path / "s.parquet").drop(["score"])


def test_names_that_a_method_does_not_need_may_be_missing(tmp_path: Path, cohort: Path) -> None:
    (tmp_path / "s.txt").write_text("a unknown 1\n")
    assert normalized(tmp_path / "s.txt", cohort, "z").exists()
    with pytest.raises(
        PredictionsError, match=r"cohort.txt: lacks 1 row of .*s.txt, such as 'unknown' in row 1 of column 2"
    ):
        normalized(tmp_path / "s.txt", cohort, "s")


@pytest.mark.parametrize(
    ("name", "scores", "text", "message"),
    [
        ("s.txt", "1 1.5\n", None, "s.txt: must name enrollment and test: name two columns with --id-column A,B;"),
        ("s.csv", "test,score\nx,1\n", None, "s.csv: must name enrollment and test: name two columns with --id-column"),
        (
            "s.csv",
            "test,score,enrollment\nx,1,\n",
            None,
            "s.csv, row 1, column enrollment: must name the row, but is missing",
        ),
        ("s.txt", SCORES, "a c 1\na c 2\n\nb c inf\n", "row 3, column 3: must be finite, but is inf"),
        ("s.txt", SCORES, "a c 1\na c nan\n", "cohort.txt, row 2, column 3: must be finite, but is nan"),
        ("s.txt", SCORES, "a c\n", "cohort.txt: has no column of scores by name or content: name it with"),
        ("s.txt", SCORES, "a c 1\nb c 1\na d 2\nb d 1\n", "cohort.txt: must have two scores that differ for 'b'"),
        ("s.txt", SCORES, "a c 1\na d 2\na e 2\n", "must have two scores that differ among its 2 highest for 'a'"),
        ("s.txt", SCORES, "", "cohort.txt: has no rows: the file is empty"),
        ("s.txt", SCORES, "\0\0", "cohort.txt: "),
    ],
)
def test_errors_name_the_file_and_nothing_is_written(
    tmp_path: Path, cohort: Path, name: str, scores: str, text: str | None, message: str
) -> None:
    (tmp_path / name).write_text(scores)
    if text is not None:
        cohort.write_text(text)
    before = sorted(tmp_path.iterdir())
    top = 2 if "highest" in message else None
    with pytest.raises(PredictionsError, match=re.escape(message)):
        normalized(tmp_path / name, cohort, "s", top)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,score\na,1\n,2\n", "cohort.csv, row 2, column name: must name the row, but is missing"),
        ("id,score\na,1\n", "cohort.csv: has no column 'name'; it has id, score"),
        ("name,score\na,1\na,x\n", "cohort.csv, row 2, column score: must be a number, but is 'x'"),
    ],
)
def test_errors_of_a_cohort_in_csv(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.txt").write_text(SCORES)
    (tmp_path / "cohort.csv").write_text(text)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        normalized(tmp_path / "s.txt", tmp_path / "cohort.csv", "z")


def test_files_that_cannot_be_rewritten_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"score": [1.0, None]}), tmp_path / "s.parquet")
    parquet.write_table(pyarrow.table({"a": [1.5], "b": [2.5]}), tmp_path / "v.parquet")
    (tmp_path / "d.parquet").write_bytes((tmp_path / "s.parquet").read_bytes()[:-9])
    for name, out, message in (
        ("s.parquet", "o.parquet", "s.parquet, row 2, column score: is missing"),
        ("v.parquet", "o.parquet", 'v.parquet: can be read as scores "a", or as scores "b": choose with --score-'),
        ("d.parquet", "o.parquet", "d.parquet: cannot be read: "),
        ("s.parquet", "o.npz", "o.npz: must end in .csv, .parquet, .tsv or .txt"),
    ):
        with pytest.raises(PredictionsError, match=re.escape(message)):
            rewrite_scores(tmp_path / name, tmp_path / out, lambda scores: scores, ReadOptions(), lambda rows: None)
        assert not (tmp_path / out).exists()
