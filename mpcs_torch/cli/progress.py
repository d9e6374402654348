"""Progress bars on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mpcs_torch.control_characters import printable

if TYPE_CHECKING:  # the trainer imports what files of scores do not need
    from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch


@contextmanager
def progress_bar(name: str, epochs: int) -> "Iterator[Hook]":
    """Show a progress bar with two values of the last epoch; yield the hook that advances it."""
    columns = (
        _description(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[values]}"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task(printable(name), total=epochs, values="")

        def advance(epoch: "MeasuredEpoch", state: "LoopState") -> None:  # noqa: ARG001  # a Hook
            shown = [column for column in ("accuracy", "mpcs") if column in epoch.values] or list(epoch.values)[:2]
            values = "  ".join(f"{column} {epoch.values[column]:.4f}" for column in shown)
            progress.update(task, completed=epoch.number, values=values)

        yield advance


@contextmanager
def counting_bar(name: str, total: int, *, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Show a progress bar; yield a function to call after each item, or with the number of items."""
    columns = (_description(), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task(printable(name), total=total)
        yield lambda items=1: progress.advance(task, items)


@contextmanager
def row_counter(name: str, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a growing number of rows; yield a function to call with the number of new rows."""
    columns = (
        _description(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task(printable(name), total=None)
        yield lambda rows: progress.advance(task, rows)


def _description() -> TextColumn:
    """Return a column of names, which may hold brackets that are no markup."""
    return TextColumn("{task.description}", markup=False)
