"""Progress goes to standard error: bars on a terminal, plain lines in a file, nothing when the user wants quiet."""

import re
import sys
from pathlib import Path

import pytest

from mpcs_torch.cli import console
from mpcs_torch.cli.console import counting_bar, row_counter
from tests.cli.shell import Shell

SCORES = "score,label\n0.9,1\n0.4,1\n0.5,0\n0.1,0\n"


def test_a_file_gets_a_plain_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with counting_bar("runs", 4) as advance:
        advance()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(console, "LINE_SECONDS", 0)
    with counting_bar("[runs]\x1b", 4) as advance:
        advance()
        advance(2)
    assert capsys.readouterr().err.splitlines() == [
        rf"[runs]\x1b: {done} of 4" for done in (1, 3)
    ]


def test_a_terminal_shows_how_many_rows_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.csv").write_text(SCORES)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    with row_counter("read [rows] " * 9, [tmp_path / "rows.csv"]) as advance:
        advance(4)
    line = (
        re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err.strip())
        .split("\r")[-1]
        .splitlines()[-1]
    )
    assert line.startswith("read [rows] read [rows] read ... ")
    assert line.endswith("4 rows 0:00:00")
    assert len(line) <= 60


@pytest.mark.parametrize("on_terminal", [False, True])
def test_quiet_leaves_the_results_alone(
    on_terminal: bool, mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.csv").write_text(SCORES)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    printed = mpcs("detect s.csv --quiet --html r.html --no-intervals")
    assert printed.err == ""
    assert "equal error rate" in printed.out
    assert "wrote" not in printed.out
    # -q is not for the next command
    assert "wrote" in mpcs("detect s.csv --html t.html").out
