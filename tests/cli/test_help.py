"""Help reads well on a terminal of 80 columns."""

import pytest

from tests.benchmarks.start_up import HELP
from tests.cli.test_cli import one_line, run


@pytest.mark.parametrize("verb", HELP, ids=" ".join)
def test_help_fits_80_columns_and_shows_what_is_in_brackets(
    verb: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    assert run(*verb, "--help") == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    if verb == ["score"]:
        assert "with commas between. [default: (those that repeat no other)]" in one_line(printed)
    if verb == ["concern", "check"]:
        assert " 2. What is allowed, but may be an oversight, is a warning." in printed
