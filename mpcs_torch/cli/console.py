"""Standard output and error: tables, JSON and messages as the terminal and the options of the verb want them."""

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

import typer

from mpcs_torch.errors import printable
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # a verb without results starts without torch
    from mpcs_torch.evaluation import Result
    from mpcs_torch.evaluation.requirements import Outcome


def finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by None, in dictionaries and sequences too."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class CommandLine:
    """The command line that runs, and those of its options that say what to print."""

    arguments: Sequence[str] = ()
    is_quiet: bool = False
    wants_json: bool = False
    muted: Sequence[str] = ()
    """Codes of warnings."""

    def begin(self, arguments: Sequence[str]) -> None:
        """Forget the options of an earlier command line."""
        self.arguments, self.is_quiet, self.wants_json, self.muted = tuple(arguments), False, False, ()

    def __str__(self) -> str:
        return printable(shlex.join(["mpcs", *self.arguments]))


COMMAND_LINE = CommandLine()
"""That of this process; callbacks of `--quiet` and `--json` set its options."""


def text_of(part: Table | str) -> str:
    """Return a table as text: for a terminal, fitted to its width, or for a pipe or a file, as Markdown."""
    if isinstance(part, str):
        return part
    if not sys.stdout.isatty():
        return part.markdown()
    from rich.console import Console

    width, height = get_terminal_size()  # rich would take 80 columns for a dumb terminal, whatever COLUMNS says
    console = Console(highlight=False, width=width, height=height)
    with console.capture() as captured:
        for i, printed in enumerate(_printed(part, width)):
            console.print(*([""] if i else []), printed, sep="\n")
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def show(text: str) -> None:
    """Print results as text, unless they are wanted as JSON."""
    if not COMMAND_LINE.wants_json:
        say(text)


def say(text: str, *, err: bool = False) -> None:
    """Print text to standard output or error; on a terminal, lines that are too long for it are broken at spaces.

    Paths and options stay whole, so that they can be copied.
    """
    if (sys.stderr if err else sys.stdout).isatty():
        wrapper = TextWrapper(
            get_terminal_size().columns, replace_whitespace=False, break_long_words=False, break_on_hyphens=False
        )
        lines = text.split("\n")
        text = "\n".join(wrapper.fill(line) if len(line) > wrapper.width else line for line in lines)
    typer.echo(text, err=err)


def heading(text: str) -> str:
    """Return a heading: bold on a terminal, as Markdown in a pipe or a file."""
    if not sys.stdout.isatty():
        return f"## {text}"
    return text if os.environ.get("TERM") in ("dumb", "unknown") else typer.style(text, bold=True)


def note(*messages: str) -> None:
    """Print messages that are no results, unless the user wants quiet; beside JSON, on standard error."""
    for message in () if COMMAND_LINE.is_quiet else messages:
        say(message, err=COMMAND_LINE.wants_json)


def print_json(value: Any) -> None:
    """Print a value as JSON, with null for NaN and infinity."""
    typer.echo(json.dumps(finite(value), indent=1, allow_nan=False, default=str))  # of paths, their text


def print_table(table: Table) -> None:
    """Print a table as the only result: as text, or as JSON with an object for each row."""
    if COMMAND_LINE.wants_json:
        print_json(table.records())
    else:
        typer.echo(text_of(table))


def _printed(table: Table, width: int) -> Iterator[Any]:
    """Yield the groups of columns of a table as tables of rich, whose markup is not interpreted."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    from mpcs_torch.cli.table_layout import columns_of, fitted, folded, wrapped

    for columns in folded(columns_of(table), width):
        printed = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        cells = []
        for column, wide in zip(columns, fitted(columns, width), strict=True):
            header = Text(wrapped(column.header, wide), justify="right" if column.is_number else "left")
            printed.add_column(header, overflow="fold", width=wide)
            cells.append(map(Text, column.lines(wide)))
        for row in zip(*cells, strict=True):
            printed.add_row(*row)
        yield printed


def print_scores(result: "Result[Any]", outcomes: "Sequence[Outcome]" = ()) -> None:
    """Print everything that was measured, and which requirements are met."""
    if COMMAND_LINE.wants_json:
        rows = [{**outcome._asdict(), "requirement": str(outcome.requirement)} for outcome in outcomes]
        print_json(result.to_dict() | ({"requirements": rows} if rows else {}))
    else:
        from mpcs_torch.evaluation.requirements import table_of

        say("\n\n".join(map(text_of, [*result.parts(), *([table_of(outcomes)] if outcomes else [])])))
    for warning in result.warnings():
        say(f"warning: {warning}", err=True)
