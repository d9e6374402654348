"""The command line as a reader types it: a command is one text, and files are in the working folder."""

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mpcs_torch.cli.app import run_app


def run(*arguments: str | Path | int) -> int:
    with pytest.raises(SystemExit) as stopped:
        run_app([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def must_run(*arguments: str | Path | int, status: int = 0) -> None:
    """Run ``mpcs ARGUMENTS``, and demand its exit status."""
    assert run(*arguments) == status, arguments


def one_line(error: str) -> str:
    """Join the lines of an error that the terminal wraps in a box, wherever a long path makes it break them."""
    return " ".join(error.replace("│", " ").split())


class Printed(NamedTuple):
    """The text that a command prints to standard output and to standard error."""

    out: str
    err: str


class Shell:
    """Run commands of ``mpcs``, and return what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, command: str, status: int = 0) -> Printed:
        """Run ``mpcs COMMAND``, demand its exit status, and return its standard output and error."""
        self._capsys.readouterr()
        assert run(*shlex.split(command)) == status
        return Printed(*self._capsys.readouterr())

    def json(self, command: str, status: int = 0) -> Any:
        """Return what ``mpcs COMMAND --json`` prints to standard output."""
        return json.loads(self(f"{command} --json", status).out)

    def refusal(self, command: str) -> str:
        """Return the message in one line with which ``mpcs COMMAND`` is refused."""
        return one_line(self(command, 2).err)
