"""Refusals of each command are those of its file: one file for each command, so that rewording changes one file.

A file has commands, each with what it prints on stderr and its exit status. `MPCS_REWRITE=1 pytest` writes the files.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from mpcs_torch.cli.app import VERBS
from tests.cli.test_cli import one_line, run

REFUSALS = Path(__file__).parent / "refusals"
FILES = {
    "p.csv": "target,a,b\na,0.9,0.1\nb,0.2,0.8\n",
    "sums.csv": "target,a,b\na,0.9,0.1\nb,0.2,0.9\n",
    "gaps.csv": "target,a,b\na,0.9,\nb,0.2,0.8\n",
    "labels.csv": "target,a,b\na,0.9,0.1\nc,0.2,0.8\n",
    "weights.csv": "target,a,b,w\na,0.9,0.1,1\nb,0.2,0.8,-1\n",
    "trials.csv": "score,target\n0.5,1\n0.2,1\n",
    "concern.yaml": "classes: [a, b]\nweights: [[0, 1], [2, 0]]\n",
    "broken.yaml": "classes: [a, b]\nweights: [[0, -1], [2, 0]]\nfactor: 2\n",
    "run.yaml": "name: mine\ndata: {name: iris}\nmodel: {name: none}\nscheduler: {power: -1}\n",
    "file.pt": "text",
    "demo/report.html": "",
    "log.csv": "decision,target\na,a\n",
}


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the commands of a file of refusals, and return what the file must hold."""
    blocks = []
    for line in path.read_text().splitlines():
        if line.startswith("$ mpcs "):
            status = run(*shlex.split(line.removeprefix("$ mpcs ")))
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
    Path("demo").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text)
    path = REFUSALS / f"{verb}.txt"
    shown = said(path, capsys)
    if os.environ.get("MPCS_REWRITE"):
        path.write_text(shown)
    assert path.read_text() == shown
    assert shown
