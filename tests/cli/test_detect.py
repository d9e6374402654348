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


def test_json_and_the_report_of_likelihood_ratios(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    arguments = ("detect", file, "--llr", "--json", "--html", page)
    assert run(*arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["targets"], told["non-targets"]) == (30, 60)
    assert told["metrics"]["actual cost, p = 0.01"] > 0
    assert page.read_text().count("data:image/svg+xml") == 4
    before = page.stat().st_mtime_ns
    assert run(*arguments) == 2
    assert "--overwrite" in one_line(capsys.readouterr().err)
    assert page.stat().st_mtime_ns == before


def test_a_warning_of_reversed_scores_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.txt").write_text("0 1\n1 0\n0.5 1\n2 0\n" * 3)
    assert run("detect", tmp_path / "s.txt", "--html", tmp_path / "r.html") == 0
    assert capsys.readouterr().err.count("the area under the ROC is 0, below 1/2") == 1
    told = Page(tmp_path / "r.html").text
    assert "minimum cost, p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.5" in told, "no line ends inside p = 0.5"
    assert "scores may be reversed" in told
    assert f"mpcs detect {tmp_path / 's.txt'}" in told


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
