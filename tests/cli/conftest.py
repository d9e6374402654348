"""A wide terminal, so that no error is wrapped in the middle of a long path, and no option of an earlier test."""

from pathlib import Path

import pytest

from mpcs_torch.cli.console import COMMAND_LINE
from tests.cli.shell import Shell


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    COMMAND_LINE.begin([])
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def mpcs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Return the command line in an empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)
