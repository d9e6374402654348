"""A wide terminal, so that no error is wrapped in the middle of a long path, and no option of an earlier test."""

import pytest

from mpcs_torch.cli.console import COMMAND_LINE


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    COMMAND_LINE.begin([])
    monkeypatch.setenv("COLUMNS", "1000")
