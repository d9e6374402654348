"""``mpcs detect``: the table, JSON, the report, and refused options."""

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import one_line, run
from tests.metrics.detection.cases import detections
from tests.report.page import Page


@pytest.fixture
def file(tmp_path: Path) -> Path:
    scores, labels = detections(90, 0)
    rows = [f"{score},{label}" for score, label in zip(scores.tolist(), labels.tolist(), strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["score,label", *rows]))
    return tmp_path / "s.csv"


def test_the_table_of_a_detector(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("detect", file, "--resamples", 5, "--point", "0.2,3,1") == 0
    out = capsys.readouterr().out
    assert out.startswith("30 targets, 60 non-targets\n")
    assert "| minimum cost, p = 0.2, costs 3 and 1 |" in out
    assert "| Cllr" not in out


def test_json_and_the_report_of_likelihood_ratios(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    arguments = ("detect", file, "--llr", "--json", "--resamples", 5, "--html", page)
    assert run(*arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["targets"], told["nontargets"]) == (30, 60)
    assert told["metrics"]["actual cost, p = 0.01"] > 0
    assert page.read_text().count("data:image/svg+xml") == 4
    before = page.stat().st_mtime_ns
    assert run(*arguments) == 2
    assert "--overwrite" in one_line(capsys.readouterr().err)
    assert page.stat().st_mtime_ns == before


def test_scores_are_matched_with_a_list_of_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scores").write_text("a x 1.5\nb y -2\n")
    (tmp_path / "trials").write_text("b y nontarget\na x target\n")
    assert run("detect", tmp_path / "scores", "--trials", tmp_path / "trials", "--resamples", 0) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| equal error rate  "))
    assert row.split("|")[2].strip() == "0"


def test_a_warning_of_reversed_scores_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.txt").write_text("0 1\n1 0\n0.5 1\n2 0\n")
    assert run("detect", tmp_path / "s.txt", "--resamples", 3, "--html", tmp_path / "r.html") == 0
    assert capsys.readouterr().err.count("the area under the ROC is 0, below 1/2") == 1
    told = Page(tmp_path / "r.html").text
    assert "minimum cost, p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.5" in told, "no line ends inside p = 0.5"
    assert "scores may be reversed" in told
    assert f"mpcs detect {tmp_path / 's.txt'} --resamples 3" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--point", "0.5,1"), "0.5,1: it must be P_TARGET or P_TARGET,C_MISS,C_FA."),
        (("--point", "2"), "2: p_target must be between 0 and 1, but got 2.0."),
        (("--point", "x"), "x: could not convert"),
    ],
)
def test_a_wrong_operating_point_is_refused(
    options: tuple[str, ...], message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("detect", file, *options) == 2
    assert message in one_line(capsys.readouterr().err)


def test_a_wrong_value_is_reported_with_its_place(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("score,label\n0.5,1\n0.x,0\n")
    assert run("detect", file) == 2
    assert "s.csv, row 2, column score: must be a number, but is '0.x'" in one_line(capsys.readouterr().err)
