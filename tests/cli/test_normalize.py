"""``mpcs normalize``: from a file of scores and a cohort to a file that `mpcs detect` reads."""

from pathlib import Path

import pytest

from tests.cli.test_cli import one_line, run


def test_scores_are_normalised_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.csv").write_text("enrollment,test,score,label\na,x,2,1\nb,x,9,0\n")
    cohort = "".join(
        f"{name} c{place} {score}\n" for name, score, place in [("a", 0, 1), ("a", 1, 2), ("b", 10, 1), ("b", 12, 2)]
    )
    (tmp_path / "cohort.txt").write_text(cohort)
    arguments = ["normalize", tmp_path / "s.csv", "--cohort", tmp_path / "cohort.txt", "--out", tmp_path / "o.csv"]
    assert run(*arguments, "--method", "z") == 0
    read = 's.csv: names "enrollment" and "test"; scores "score"; not used: label'
    assert capsys.readouterr().out == f"{read}\nwrote {tmp_path / 'o.csv'}\n"
    assert (tmp_path / "o.csv").read_text() == "enrollment,test,score,label\na,x,3.0,1\nb,x,-2.0,0\n"
    assert run("detect", tmp_path / "o.csv", "--no-intervals") == 0
    assert "equal_error_rate" in capsys.readouterr().out.lower()
    assert run(*arguments, "--method", "z") == 2
    assert "exists: choose another file or pass --overwrite" in one_line(capsys.readouterr().err)
    assert run(*arguments, "--method", "adaptive-s", "--overwrite") == 2
    error = one_line(capsys.readouterr().err)
    assert f"cohort.txt: lacks 2 rows of {tmp_path / 's.csv'}, such as 'x' in row 1 of column test" in error


def test_top_is_for_the_adaptive_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.txt").write_text("a x 1\n")
    (tmp_path / "c.txt").write_text("".join(f"{name} c {score}\n" for name in "ax" for score in (1, 5, 7)))
    arguments = ["normalize", tmp_path / "s.txt", "--cohort", tmp_path / "c.txt", "--out", tmp_path / "o.txt"]
    assert run(*arguments, "--method", "s", "--top", 2) == 2
    assert "is not for --method s" in one_line(capsys.readouterr().err)
    assert run(*arguments, "--method", "adaptive-s", "--top", 2) == 0
    assert (tmp_path / "o.txt").read_text() == "a\tx\t-5.0\n"
    assert "fewer than" not in capsys.readouterr().out


def test_names_with_fewer_cohort_scores_than_asked_for_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text("a x 1\n")
    scores = {"a": (1, 5, 7), "x": (1, 5)}
    (tmp_path / "c.txt").write_text("".join(f"{name} c {score}\n" for name, own in scores.items() for score in own))
    arguments = ["normalize", tmp_path / "s.txt", "--cohort", tmp_path / "c.txt", "--method", "adaptive-s"]
    assert run(*arguments, "--out", tmp_path / "o.txt", "--top", 3) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[1]
        .startswith("1 name has fewer than 3 scores in c.txt: all of them were taken")
    )
    assert run(*arguments, "--out", tmp_path / "p.txt") == 0
    assert "2 names have fewer than 300 scores in c.txt" in capsys.readouterr().out
