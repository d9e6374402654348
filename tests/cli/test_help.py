"""Help reads well on a terminal of 80 columns."""

import pytest
import typer

from benchmarks.start_up import HELP
from mpcs_torch.cli.app import VERBS, app
from tests.cli.shell import one_line, run


@pytest.mark.parametrize("verb", HELP, ids=" ".join)
def test_help_fits_80_columns_and_shows_what_is_in_brackets(
    verb: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    assert run(*verb, "--help") == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    if verb == ["score"]:
        assert "with commas between. [default: (those that repeat no other)]" in one_line(
            printed
        )
    if verb == ["concern", "check"]:
        assert "then 2. Valid entries that may be an oversight give a warning." in printed


@pytest.mark.parametrize("verb", VERBS)
def test_each_option_says_what_it_is_for(verb: str) -> None:
    root = typer.main.get_command(app)
    command = root.get_command(root.make_context("mpcs", [], resilient_parsing=True), verb)  # type: ignore[attr-defined]
    for each in (command, *getattr(command, "commands", {}).values()):
        assert [parameter.name for parameter in each.params if not parameter.help] == []
        assert "Args:" not in each.help
