"""Refusals of each command are those of its file: one file for each command, so that rewording changes one file.

A file has commands, each with what it prints on stderr and its exit status; a command that succeeds shows that the way
out works which the refusal before it names. A refused command writes nothing. `MPCS_REWRITE=1 pytest` writes the files.
"""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from mpcs_torch import ConcernSpec
from mpcs_torch.cli.app import VERBS
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.learning import DecisionRule
from tests.cli.shell import one_line, run

REFUSALS = Path(__file__).parent / "refusals"


def contents() -> dict[Path, bytes]:
    """Return the files of the current folder with what they hold."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the commands of a file of refusals, and return what the file must hold."""
    blocks = []
    for line in path.read_text().splitlines():
        if line.startswith("$ mpcs "):
            before = contents()
            status = run(*shlex.split(line.removeprefix("$ mpcs ")))
            assert status != ExitStatus.REFUSED or contents() == before, line
            printed = one_line(
                re.sub("[╭─╮╰╯]", " ", capsys.readouterr().err)
            )  # the box of usage errors
            message = re.sub("^Usage: .* for help. Error ", "", printed)
            blocks.append(f"{line}\n{message}\nexit status {status}\n")
    return "\n".join(blocks)


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_refuses_as_its_file_shows(
    verb: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(REFUSALS / "files", tmp_path, dirs_exist_ok=True)
    for name, classes in (("fitted.pt", ["a", "b"]), ("refer.pt", ["refer", "b"])):
        DecisionRule(ConcernSpec(classes), calibration=None).save(Path(name))
    DecisionRule(ConcernSpec(2, refer=0.4), calibration=None).save(Path("other.pt"))
    path = REFUSALS / f"{verb}.txt"
    shown = said(path, capsys)
    if os.environ.get("MPCS_REWRITE"):
        path.write_text(shown)
    assert path.read_text() == shown
    assert shown
