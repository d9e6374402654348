"""Print tables, JSON, messages, warnings and progress, as the terminal and the options require."""

import json
import math
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from textwrap import TextWrapper
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from mpcs_torch.errors import printable
from mpcs_torch.errors import shown as shown_name
from mpcs_torch.io.named_errors import naming
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # a verb without results starts without torch
    from mpcs_torch.evaluation import Result
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.evaluation.requirements import Outcome
    from mpcs_torch.trainer.loop import Hook, MeasuredEpoch, TrainingRun


def finite(value: Any) -> Any:
    """Return ``value`` with NaN and infinity replaced by None, also inside dictionaries, lists and tuples."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@dataclass
class CommandLine:
    """The current command line: its arguments, and the values of the options in `options.PRINTING`."""

    arguments: Sequence[str] = ()
    quiet: bool = False
    json: bool = False
    overwrite: bool = False
    everything: bool = False
    """Whether texts show all metrics, and tables of many classes."""
    mute: Sequence[str] = ()
    """The codes of the warnings that are not printed."""
    read: list[str] = field(default_factory=list)
    """The printed sentences on how files were read, such as which column has the labels."""

    def begin(self, arguments: Sequence[str]) -> None:
        """Store ``arguments``, and reset all other fields to their defaults: other modules hold this object."""
        for name, value in vars(CommandLine(tuple(arguments))).items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return printable(shlex.join(["mpcs", *self.arguments]))


COMMAND_LINE = CommandLine()


def part_text(part: Table | str) -> str:
    """Return ``part`` as text; a table is fitted to the width of a terminal, or Markdown for a pipe or a file."""
    if isinstance(part, str):
        return part
    if not sys.stdout.isatty():
        return part.markdown()
    from rich.console import Console

    from mpcs_torch.cli.table_layout import fitted_tables

    # For a dumb terminal, rich would ignore COLUMNS and assume 80.
    width, height = get_terminal_size()
    console = Console(highlight=False, width=width, height=height)
    with console.capture() as captured:
        for number, printed in enumerate(fitted_tables(part, width)):
            if number > 0:
                console.print()
            console.print(printed)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def say(*parts: Table | str, err: bool = False) -> None:
    """Print texts and tables, with an empty line between them, to standard output, or with ``err`` to standard error.

    On a terminal, long lines are broken at spaces; paths and options stay whole, so that they can be copied.
    """
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    texts = [
        _wrapped(part) if isinstance(part, str) and is_terminal else part_text(part)
        for part in parts
    ]
    with naming("standard error" if err else "standard output"):
        typer.echo("\n\n".join(texts), err=err)


def _wrapped(text: str) -> str:
    """Break long lines of ``text`` at spaces; shorter lines, such as those of tables, stay as they are."""
    wrapper = TextWrapper(
        get_terminal_size().columns,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(
        wrapper.fill(line) if len(line) > wrapper.width else line
        for line in text.split("\n")
    )


def show(*parts: Table | str) -> None:
    """Print texts and tables, but nothing if the user asked for JSON."""
    if parts and not COMMAND_LINE.json:
        say(*parts)


def heading(text: str) -> str:
    """Return a heading: bold on a terminal, as Markdown in a pipe or a file."""
    if not sys.stdout.isatty():
        return f"## {text}"
    if os.environ.get("TERM") in ("dumb", "unknown"):
        return text
    return typer.style(text, bold=True)


def note(*messages: str) -> None:
    """Print messages that are not results, unless --quiet is given. With --json, print to standard error."""
    if COMMAND_LINE.quiet:
        return
    for message in messages:
        say(message, err=COMMAND_LINE.json)


def print_reading(*sentences: str) -> None:
    """Print sentences on how files were read, without repeats, even with --quiet. With --json, use standard error."""
    for sentence in dict.fromkeys(sentences):
        if sentence not in COMMAND_LINE.read:
            COMMAND_LINE.read.append(sentence)
            say(printable(sentence), err=COMMAND_LINE.json)


def print_result(plain: Any, *parts: Table | str) -> None:
    """Print a result: with --json, the value ``plain`` as JSON; else the texts and tables ``parts``."""
    show(*parts)
    if not COMMAND_LINE.json:
        return
    if isinstance(plain, dict) and COMMAND_LINE.read:
        plain = {"read": COMMAND_LINE.read, **plain}
    # ``default`` makes text of paths.
    text = json.dumps(finite(plain), indent=1, allow_nan=False, default=str)
    with naming("standard output"):
        typer.echo(text)


def print_scores(
    result: "Result[Any]",
    outcomes: "Sequence[Outcome]" = (),
    beside: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Print the values of ``result`` and the ``outcomes`` of requirements. The JSON of --json also has ``beside``."""
    from mpcs_torch.evaluation.requirements import outcomes_table

    plain = dict[str, Any]()
    if COMMAND_LINE.json:
        print_reading(*result.read)
        plain = {**beside, **result.to_dict()}
        rows = list[dict[str, Any]]()
        for outcome in outcomes:
            row = outcome._asdict()
            row["requirement"] = str(outcome.requirement)
            row["reason"] = str(outcome.reason or "")
            rows.append(row)
        if rows:
            plain["requirements"] = rows
    parts = result.parts(everything=COMMAND_LINE.everything)
    if outcomes:
        parts.append(outcomes_table(outcomes))
    print_result(plain, *parts)
    print_warnings(*map(str, result.warnings()))


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the Python warnings of the with block when it ends, except repeated and muted warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for code in COMMAND_LINE.mute:
            warnings.filterwarnings("ignore", f"{code}:")
        yield
    print_warnings(*(str(warning.message) for warning in caught))


def print_warnings(*messages: str) -> None:
    """Print warnings to standard error, without repeats."""
    for message in dict.fromkeys(messages):
        say(f"mpcs: warning: {message}", err=True)


COUNT = "{task.completed:.0f}/{task.total}"
LINE_SECONDS = 60
"""The minimum number of seconds between two lines of progress, where no bar can be shown."""


@contextmanager
def progress_bar(name: str, epochs: int) -> "Iterator[Hook]":
    """Show a progress bar for ``epochs`` epochs. Yield a hook that advances it and shows two metrics of each epoch."""
    with shown_progress(name, epochs, COUNT, "{task.fields[values]}") as update:

        def advance(epoch: "MeasuredEpoch", run: "TrainingRun") -> None:  # noqa: ARG001  # a Hook
            preferred: Sequence[str] = ("accuracy", "mpcs")
            columns = [column for column in preferred if column in epoch.values]
            if not columns:
                columns = list(epoch.values)[:2]
            values = "  ".join(f"{column} {epoch.values[column]:.4f}" for column in columns)
            update(completed=epoch.number, values=values)

        yield advance


@contextmanager
def counting_bar(name: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a progress bar over ``total`` items. Yield a function that advances it by 1 or by its argument."""
    with shown_progress(name, total, COUNT) as update:
        yield lambda items=1: update(advance=items)


@contextmanager
def row_counter(
    doing: str, paths: Sequence[Path], *files: "Predictions"
) -> Iterator[Callable[[int], None]]:
    """Show how many rows have been read. Yield a function that adds a given number of rows.

    First, print how each of ``files`` is read (which column has the labels, for example). At the end of the with block,
    print the warnings and notes about ``files``.
    """
    print_reading(*(file.how() for file in files))
    name = f"{doing} {', '.join(path.name for path in paths)}"
    with (
        printed_warnings(),
        shown_progress(name, None, "{task.completed:,.0f} rows") as update,
    ):
        yield lambda rows: update(advance=rows)
    note(*(sentence for file in files for sentence in file.notes))


@contextmanager
def shown_progress(
    name: str, total: int | None, *texts: str
) -> Iterator[Callable[..., None]]:
    """Show progress with ``texts`` (templates of rich). If ``total`` is given, also show a bar and the time left.

    Yield a function that updates the display; its keyword arguments are those of `Progress.update` in rich.
    """
    if COMMAND_LINE.quiet:
        yield lambda **_: None
    elif not sys.stderr.isatty():
        yield _lines(shown_name(name), total)
    else:
        with _bar(shown_name(name, 32), total, texts) as update:  # fits a narrow terminal
            yield update


@contextmanager
def _bar(
    name: str, total: int | None, texts: Sequence[str]
) -> Iterator[Callable[..., None]]:
    """Show a line of rich that is redrawn, and yield a function that updates it."""
    from rich import progress as bars  # slow to import
    from rich.console import Console

    columns: list[bars.ProgressColumn] = [
        bars.TextColumn(text, markup=False) for text in ("{task.description}", *texts)
    ]
    if total is None:
        columns.append(bars.TimeElapsedColumn())
    else:
        columns.insert(1, bars.BarColumn())
        columns.append(bars.TimeRemainingColumn(elapsed_when_finished=True))
    with bars.Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=total, values="")
        yield partial(progress.update, task)
        # ``total`` may have been an estimate.
        progress.update(task, total=progress.tasks[0].completed)


def _lines(name: str, total: int | None) -> Callable[..., None]:
    """Return a function that prints a line of progress, at most once in `LINE_SECONDS`."""
    done = 0
    printed = monotonic()

    def update(*, advance: int = 0, completed: int | None = None, values: str = "") -> None:
        nonlocal done, printed
        done = done + advance if completed is None else completed
        if monotonic() - printed >= LINE_SECONDS:
            printed = monotonic()
            of = "" if total is None else f" of {total:,}"
            typer.echo(f"{name}: {done:,}{of}  {values}".rstrip(), err=True)

    return update
