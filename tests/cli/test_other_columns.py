"""Columns that are no classes are left out by every verb that reads predictions, and each says so."""

from pathlib import Path

import pytest

from tests.cli.test_cli import one_line, run

ROWS = "id,red,green,label,other,age\n" + "".join(
    f"img{row},{0.9 - 0.01 * row},{0.1 + 0.01 * row},{'red' if row % 3 else 'green'},red,{20 + row}\n"
    for row in range(60)
)
OPTIONS = ("--ignore", "age", "--target-column", "label")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "p.csv").write_text(ROWS)
    (tmp_path / "concern.yaml").write_text("classes: [red, green]\n")
    return tmp_path / "p.csv", tmp_path / "concern.yaml"


def test_calibrating_and_deciding_take_the_options_of_scoring(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, concern = files
    calibration, rule = tmp_path / "c.pt", tmp_path / "r.pt"
    for command in (
        ("score", path, "--concern", concern, "--no-intervals"),
        ("calibrate", "fit", path, "--method", "temperature", "--out", calibration),
    ):
        assert run(*command) == 2, command
        assert "--ignore" in one_line(capsys.readouterr().err)
        assert run(*command, *OPTIONS) == 0, command
        told = capsys.readouterr()
        assert "'id' (id" in told.out + told.err, command
    for command in (  # the classes are known, and other columns are kept
        ("calibrate", "apply", calibration, path, "--out", tmp_path / "out.csv"),
        ("decide", "fit", path, "--concern", concern, "--out", rule),
        ("decide", "apply", rule, path, "--out", tmp_path / "decisions.csv"),
    ):
        assert run(*command, *OPTIONS) == 0, command
    for name, header in (("out", "red,green,target"), ("decisions", "target,decision,risk,cost,reason,best")):
        assert (tmp_path / f"{name}.csv").read_text().splitlines()[0] == f"id,other,{header}"


def test_a_column_of_logits_that_is_no_label_is_doubted(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("score", files[0], "--target-column", "label", "--logits", "--metrics", "accuracy", "--no-intervals")
    assert run(*given) == 0
    assert "no row has the label 'age': if that is no class, --ignore leaves its column out" in capsys.readouterr().err
    assert run(*given, "--ignore", "age") == 0
    assert "no row has the label" not in capsys.readouterr().err
