"""``mpcs score``: the table, JSON, the report, and files that are not replaced."""

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import run

CSV = "target,red,yellow,green\n0,0.7,0.2,0.1\n0,0.2,0.7,0.1\n2,0.6,0.1,0.3\n1,0.1,0.8,0.1\n"
CONCERN = "classes: [red, yellow, green]\nreleases: [[red, yellow]]\nfactor: 0.5\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "p.csv").write_text(CSV)
    (tmp_path / "concern.yaml").write_text(CONCERN)
    return tmp_path / "p.csv", tmp_path / "concern.yaml"


def test_a_table_with_all_metrics(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", files[0], "--concern", files[1]) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 rows, 3 classes: red, yellow, green\n")
    for name in ("mpcs", "dangerous", "macro_fscore", "measured_robustness", "calibration_slope", "mcc", "brier_score"):
        assert f"| {name} " in out
    assert "| class  | samples | precision | recall | error rate |" in out


def test_json_has_the_same_values(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", files[0], "--concern", files[1], "--json") == 0
    scores = json.loads(capsys.readouterr().out)
    assert (scores["rows"], scores["classes"]) == (4, ["red", "yellow", "green"])
    assert scores["metrics"]["dangerous"] == 1
    assert scores["metrics"]["micro_fscore"] == 0.5
    assert scores["metrics"]["macro_precision"] is None  # no sample is predicted as green
    assert scores["confusion"] == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert scores["per_class"]["red"] == {"samples": 2, "precision": 0.5, "recall": 0.5, "error_rate": 0.5}
    assert scores["per_class"]["green"]["precision"] is None
    assert run("score", files[0], "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["dangerous"] == 2


def test_metrics_are_chosen_by_name(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", files[0], "--metrics", "mpcs,accuracy", "--k", 2, "--t", 50, "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == ["mpcs", "accuracy"]
    assert run("score", files[0], "--metrics", "acuracy") == 2
    assert "metrics are accuracy, f1_macro" in capsys.readouterr().err
    assert run("score", files[0], "--k", 4) == 2
    assert "k must be from 1 to the number of classes (3), but got 4" in capsys.readouterr().err


def test_the_report_shows_both_figures_and_is_not_replaced(files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("score", files[0], "--concern", files[1], "--html", page) == 0
    assert page.read_text().count("<img src=") == 2
    assert "macro_fscore" in page.read_text()
    page.write_text("mine")
    assert run("score", files[0], "--html", page) == 2
    assert page.read_text() == "mine"
    assert run("score", files[0], "--html", page, "--overwrite") == 0
    assert page.read_text() != "mine"
    assert run("score", files[0], "--html", tmp_path / "nowhere" / "report.html") == 2


def test_a_malformed_file_is_one_message(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[0].write_text(CSV + "1,0.5\n")
    assert run("score", files[0]) == 2
    captured = capsys.readouterr()
    assert "row 5, column yellow: is missing: the row has 2 of 4 values" in captured.err
    assert not captured.out
    assert run("score", files[0].with_name("none.csv")) == 2
