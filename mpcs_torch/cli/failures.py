"""Print each error as one message, whether it is the user's, an interrupt or a bug, and choose the exit status."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mpcs_torch.errors import MpcsError, printable
from mpcs_torch.exit_statuses import ExitStatus

EXTRA_OF = {
    **dict.fromkeys(("jinja2", "matplotlib", "pyarrow", "pydantic", "rich", "yaml"), "cli"),
    **dict.fromkeys(("pooch", "requests", "sklearn", "torchvision"), "train"),
    "h5py": "hdf5",
}
"""The extra of this package that installs each optional module, such as "hdf5" for ``h5py``."""

NO_MEMORY = "can't allocate memory"
"""A part of the RuntimeError that torch raises instead of a MemoryError."""


@contextmanager
def reported_errors(*, debug: bool) -> Iterator[None]:
    """Print an error in the with block and exit with its `ExitStatus`.

    With ``debug``, print the traceback, too. Errors that Typer handles, such as wrong arguments, pass unchanged.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, (typer.Abort, BrokenPipeError)) or hasattr(error, "exit_code"):
            raise
        if debug:
            traceback.print_exc()
        message, status = _message_and_status(error)
        is_printed = isinstance(error, MpcsError) and error.is_printed_elsewhere
        if not is_printed:
            lines = f"mpcs: {message}".split("\n")
            typer.echo("\n".join(printable(line) for line in lines), err=True)
        raise SystemExit(status) from None


def _message_and_status(error: BaseException) -> tuple[str, int]:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", ExitStatus.INTERRUPTED
    if isinstance(error, MpcsError):
        return str(error), error.exit_status
    if isinstance(error, OSError):
        if error.filename is None:
            return str(error), ExitStatus.REFUSED
        return f"{error.filename}: {error.strerror}", ExitStatus.REFUSED
    if isinstance(error, ModuleNotFoundError):
        module, _, _ = str(error.name).partition(".")
        if module in EXTRA_OF:
            command = f"pip install 'mpcs_torch[{EXTRA_OF[module]}]'"
            return f"this command needs {module}: {command}", ExitStatus.REFUSED
    line = " ".join(str(error).split())
    if isinstance(error, MemoryError) or NO_MEMORY in line:
        return (
            "there is not enough memory for so many rows, columns or classes",
            ExitStatus.REFUSED,
        )
    return (
        f"unexpected {type(error).__name__}: {line}; this is a bug: `mpcs --debug ...` shows where",
        ExitStatus.FAULT,
    )
