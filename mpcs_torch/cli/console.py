"""Print tables, JSON and messages, as the terminal and the options of the verb require."""

import json
import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from textwrap import TextWrapper
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from mpcs_torch.errors import printable
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # a verb without results starts without torch
    from mpcs_torch.evaluation import Result
    from mpcs_torch.evaluation.requirements import Outcome


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by None, also inside dictionaries and sequences."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class CommandLine:
    """The current command line, and the options that all verbs share (`options.PRINTING`)."""

    arguments: Sequence[str] = ()
    quiet: bool = False
    json: bool = False
    overwrite: bool = False
    mute: Sequence[str] = ()
    """The codes of warnings to leave out."""
    read: list[str] = field(default_factory=list)
    """Sentences on how each file was read."""

    def begin(self, arguments: Sequence[str]) -> None:
        """Set the arguments, and reset the options of an earlier command line."""
        self.__dict__.update(vars(CommandLine(tuple(arguments))))

    def __str__(self) -> str:
        return printable(shlex.join(["mpcs", *self.arguments]))


COMMAND_LINE = CommandLine()
"""The command line of this process."""


def text_of(part: Table | str) -> str:
    """Return a table as text: fitted to the width of a terminal, or as Markdown for a pipe or a file."""
    if isinstance(part, str):
        return part
    if not sys.stdout.isatty():
        return part.markdown()
    from rich.console import Console

    from mpcs_torch.cli.table_layout import fitted_tables

    width, height = get_terminal_size()  # rich would take 80 columns for a dumb terminal, whatever COLUMNS says
    console = Console(highlight=False, width=width, height=height)
    with console.capture() as captured:
        for i, printed in enumerate(fitted_tables(part, width)):
            console.print(*([""] if i else []), printed, sep="\n")
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def say(*parts: Table | str, err: bool = False) -> None:
    """Print texts and tables, with an empty line between them, to standard output or error.

    On a terminal, long lines are broken at spaces; paths and options stay whole, so that they can be copied.
    """
    text = "\n\n".join(map(text_of, parts))
    if (sys.stderr if err else sys.stdout).isatty():
        wrapper = TextWrapper(
            get_terminal_size().columns, replace_whitespace=False, break_long_words=False, break_on_hyphens=False
        )
        lines = text.split("\n")
        text = "\n".join(wrapper.fill(line) if len(line) > wrapper.width else line for line in lines)
    typer.echo(text, err=err)


def show(*parts: Table | str) -> None:
    """Print results as text, unless the user asked for JSON."""
    if parts and not COMMAND_LINE.json:
        say(*parts)


def heading(text: str) -> str:
    """Return a heading: bold on a terminal, as Markdown in a pipe or a file."""
    if not sys.stdout.isatty():
        return f"## {text}"
    return text if os.environ.get("TERM") in ("dumb", "unknown") else typer.style(text, bold=True)


def note(*messages: str) -> None:
    """Print messages that are not results, unless --quiet was given. With --json, they go to standard error."""
    for message in () if COMMAND_LINE.quiet else messages:
        say(message, err=COMMAND_LINE.json)


def print_reading(*sentences: str) -> None:
    """Print sentences on how files were read, each once, even with --quiet. With --json, they go to standard error."""
    for sentence in dict.fromkeys(sentences):
        if sentence not in COMMAND_LINE.read:
            COMMAND_LINE.read.append(sentence)
            say(printable(sentence), err=COMMAND_LINE.json)


def print_result(plain: Any, *parts: Table | str) -> None:
    """Print a result: with --json, ``plain`` as JSON, else ``parts``, its texts and tables."""
    show(*parts)
    if not COMMAND_LINE.json:
        return
    if isinstance(plain, dict) and COMMAND_LINE.read:
        plain = {"read": COMMAND_LINE.read, **plain}
    typer.echo(json.dumps(finite(plain), indent=1, allow_nan=False, default=str))  # paths become text


def print_scores(
    result: "Result[Any]", outcomes: "Sequence[Outcome]" = (), beside: Mapping[str, object] = MappingProxyType({})
) -> None:
    """Print all values of a result, and whether requirements are met; with --json, also the values of ``beside``."""
    from mpcs_torch.evaluation.requirements import table_of

    plain = dict[str, Any]()
    if COMMAND_LINE.json:
        print_reading(*result.read)
        rows = [{**outcome._asdict(), "requirement": str(outcome.requirement)} for outcome in outcomes]
        plain = {**beside, **result.to_dict()} | ({"requirements": rows} if rows else {})
    print_result(plain, *result.parts(), *([table_of(outcomes)] if outcomes else []))
    for warning in result.warnings():
        say(f"warning: {warning}", err=True)
