"""Print each error as one message, whether it is the user's, an interrupt or a bug."""

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mpcs_torch.cli.console import COMMAND_LINE, say
from mpcs_torch.errors import MpcsError, printable

EXTRA_OF = {
    **dict.fromkeys(("jinja2", "matplotlib", "pyarrow", "pydantic", "rich", "yaml"), "cli"),
    **dict.fromkeys(("pooch", "requests", "sklearn", "torchvision"), "train"),
    "h5py": "hdf5",
}
"""For each module that may be missing, the name of the extra of this package that installs it."""


@contextmanager
def reported_errors(*, debug: bool) -> Iterator[None]:
    """Print an error and exit: with status 2 if the user can fix it, 130 after Ctrl-C, and 1 for a bug.

    With ``debug``, print the traceback, too. Typer handles errors in the arguments and closed pipes itself.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, (typer.Abort, BrokenPipeError)) or hasattr(error, "exit_code"):
            raise
        if debug:
            traceback.print_exc()
        message, status = _message_and_status(error)
        if not (isinstance(error, MpcsError) and error.is_printed_elsewhere):
            typer.echo("\n".join(map(printable, f"mpcs: {message}".split("\n"))), err=True)
        raise SystemExit(status) from None


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings as messages of the command, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for code in COMMAND_LINE.mute:
            warnings.filterwarnings("ignore", f"{code}:")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"mpcs: warning: {message}", err=True)


def _message_and_status(error: BaseException) -> tuple[str, int]:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, MpcsError):
        return str(error), error.exit_status
    if isinstance(error, OSError):
        return str(error) if error.filename is None else f"{error.filename}: {error.strerror}", 2
    if isinstance(error, ModuleNotFoundError) and (module := str(error.name).split(".")[0]) in EXTRA_OF:
        return f"this command needs {module}: pip install 'mpcs_torch[{EXTRA_OF[module]}]'", 2
    line = " ".join(str(error).split())
    return f"unexpected {type(error).__name__}: {line}; this is a bug: `mpcs --debug ...` shows where", 1
