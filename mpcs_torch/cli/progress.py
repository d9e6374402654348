"""Progress on standard error: bars on a terminal, a line each minute in a file, nothing with `--quiet`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note, print_reading
from mpcs_torch.cli.failures import printed_warnings
from mpcs_torch.errors import shown as shown_name

if TYPE_CHECKING:  # verbs that start without torch show progress, too
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch

COUNT = "{task.completed:.0f}/{task.total}"
LINE_SECONDS = 60
"""The time between two lines of progress in a file, in seconds."""


@contextmanager
def progress_bar(name: str, epochs: int) -> "Iterator[Hook]":
    """Show a progress bar with two values of the last epoch; yield the hook that advances it."""
    with shown_progress(name, epochs, COUNT, "{task.fields[values]}") as update:

        def advance(epoch: "MeasuredEpoch", state: "LoopState") -> None:  # noqa: ARG001  # a Hook
            columns = [column for column in ("accuracy", "mpcs") if column in epoch.values] or list(epoch.values)[:2]
            values = "  ".join(f"{column} {epoch.values[column]:.4f}" for column in columns)
            update(completed=epoch.number, values=values)

        yield advance


@contextmanager
def counting_bar(name: str, total: int) -> Iterator[Callable[..., None]]:
    """Show a progress bar; yield a function to call after each item, or after several items with their number."""
    with shown_progress(name, total, COUNT) as update:
        yield lambda items=1: update(advance=items)


@contextmanager
def row_counter(doing: str, paths: Sequence[Path], *files: "Predictions") -> Iterator[Callable[[int], None]]:
    """Show a growing number of rows; yield a function to call with the number of new rows.

    Before the rows, print how ``files`` are read; afterwards, print warnings and notes about them.
    """
    print_reading(*(file.how() for file in files))
    name = f"{doing} {', '.join(path.name for path in paths)}"
    with printed_warnings(), shown_progress(name, None, "{task.completed:,.0f} rows") as update:
        yield lambda rows: update(advance=rows)
    note(*(sentence for file in files for sentence in file.notes))


@contextmanager
def shown_progress(name: str, total: int | None, *texts: str) -> Iterator[Callable[..., None]]:
    """Show progress with ``texts`` (templates of rich), and a bar and the time left if ``total`` is known.

    Yield a function that takes the arguments of `Progress.update` in rich.
    """
    if COMMAND_LINE.quiet:
        yield lambda **_: None
    elif not sys.stderr.isatty():
        yield _Lines(shown_name(name), total)
    else:
        from rich import progress as bars  # slow to import
        from rich.console import Console

        described, *columns = (bars.TextColumn(text, markup=False) for text in ("{task.description}", *texts))
        left = bars.TimeRemainingColumn(elapsed_when_finished=True)
        around = [*columns, bars.TimeElapsedColumn()] if total is None else [bars.BarColumn(), *columns, left]
        with bars.Progress(described, *around, console=Console(stderr=True)) as progress:
            task = progress.add_task(shown_name(name, 32), total=total, values="")  # fits a narrow terminal
            yield partial(progress.update, task)
            progress.update(task, total=progress.tasks[0].completed)  # the total was perhaps an estimate


class _Lines:
    """Print a line about the progress at most every `LINE_SECONDS` seconds."""

    def __init__(self, name: str, total: int | None) -> None:
        self._name, self._total, self._done = name, total, 0
        self._begun = self._printed = monotonic()

    def __call__(self, *, advance: int = 0, completed: int | None = None, values: str = "") -> None:
        self._done = self._done + advance if completed is None else completed
        now = monotonic()
        if now - self._printed < LINE_SECONDS:
            return
        self._printed = now
        parts = [f"{self._done:,}" if self._total is None else f"{self._done:,} of {self._total:,}"]
        if self._total is not None and 0 < self._done <= self._total:
            left = (now - self._begun) * (self._total - self._done) / self._done
            parts.append(f"about {left / 60:.0f} min left")
        typer.echo(f"{self._name}: {', '.join([*parts, *([values] if values else [])])}", err=True)
