"""The options of how to read a file are the same in every verb that reads predictions, and each says how it read."""

from pathlib import Path

import pytest

from tests.cli.shell import one_line, run

ROWS = "id,red,green,truth,label,age\n" + "".join(
    f"img{row},{0.9 - 0.01 * row},{0.1 + 0.01 * row},{'red' if row % 3 else 'green'},red,{20 + row}\n"
    for row in range(60)
)
OPTIONS = ("--label-column", "truth")
READ = 'p.csv: labels "truth"; scores red, green; not used: id, label, age'


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
        ("calibrate", "apply", calibration, path, "--out", tmp_path / "out.csv"),
        ("decide", "fit", path, "--concern", concern, "--out", rule),
        ("decide", "apply", rule, path, "--out", tmp_path / "decisions.csv"),
        ("explore", path, "--concern", concern, "--out", tmp_path / "page.html"),
    ):
        if command[1] != "apply":
            assert run(*command) == 2, command
            assert "--label-column truth" in one_line(capsys.readouterr().err)
        assert run(*command, *OPTIONS) == 0, command
        assert capsys.readouterr().out.splitlines()[0].startswith(READ), command
    for name, added in (("out", ""), ("decisions", ",decision,risk,cost,reason,best")):
        assert (tmp_path / f"{name}.csv").read_text().splitlines()[0] == ROWS.splitlines()[
            0
        ] + added
