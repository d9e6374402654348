"""``mpcs convert``: from each format to each other one."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.test_cli import run

CSV = "enrollment,test,score,label\na,x,1.5,target\nb,x,-0.25,nontarget\nb,y,inf,target\n"


def test_a_file_goes_through_all_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [("a.csv", None), ("b.parquet", None), ("c.npz", None), ("d.txt", "d-list.txt"), ("h.csv", None)]
    (tmp_path / "a.csv").write_text(CSV)
    for (scores, trials), (out, out_trials) in pairwise(steps):
        given = [] if trials is None else ["--trials", tmp_path / trials]
        given += [] if out_trials is None else ["--out-trials", tmp_path / out_trials]
        assert run("convert", tmp_path / scores, tmp_path / out, *given) == 0
    assert sorted((tmp_path / "h.csv").read_text().splitlines()) == sorted(CSV.splitlines())
    assert capsys.readouterr().out.splitlines()[5] == f"wrote {tmp_path / 'd-list.txt'} and {tmp_path / 'd.txt'}"


def test_columns_without_a_place_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.csv").write_text("speaker,enrollment,test,score,label\nanna,a,x,1,1\nben,b,x,0,0\n")
    assert run("convert", tmp_path / "s.csv", tmp_path / "s.txt", "--out-trials", tmp_path / "t.txt") == 0
    assert "mpcs: warning: s.txt has no place for speaker\n" in capsys.readouterr().err
    assert (tmp_path / "s.txt").read_text() == "a x 1.0\nb x 0.0\n"
    assert (tmp_path / "t.txt").read_text() == "a x target\nb x nontarget\n"


def test_files_are_kept_unless_they_may_be_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.csv").write_text(CSV)
    (tmp_path / "t.txt").write_text("mine")
    arguments = ["convert", tmp_path / "s.csv", tmp_path / "s.txt", "--out-trials", tmp_path / "t.txt"]
    assert run(*arguments) == 2
    assert "t.txt exists: choose another file or pass --overwrite" in capsys.readouterr().err
    assert (tmp_path / "t.txt").read_text() == "mine"
    assert run(*arguments, "--overwrite") == 0
    assert (tmp_path / "t.txt").read_text() != "mine"
    assert run("convert", tmp_path / "s.csv", tmp_path / "s.csv", "--overwrite") == 0
