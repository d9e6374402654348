"""How errors reach the user: one message for what the user can fix, and a request to report for a bug."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mpcs_torch.errors import MpcsError


@contextmanager
def reported_errors(*, debug: bool) -> Iterator[None]:
    """Print an error and exit: with 2 if the user can fix it, with 130 after Ctrl-C, and with 1 for a bug.

    Typer prints its own errors, those in the arguments, and knows what to do about a closed pipe.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, (typer.Abort, BrokenPipeError)) or hasattr(error, "exit_code"):
            raise
        if debug:
            traceback.print_exc()
        message, status = _told(error)
        typer.echo(f"mpcs: {message}", err=True)
        raise SystemExit(status) from None


def _told(error: BaseException) -> tuple[str, int]:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, MpcsError):
        return f"{error.filename}: {error.strerror}", 2
    if isinstance(error, (MpcsError, OSError)):
        return str(error), 2
    line = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}: {line}; this is a bug: `mpcs --debug ...` shows where", 1
