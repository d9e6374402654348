"""Name the file in errors of writing that name none, such as that of a full disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from os import PathLike

FULL = (ENOSPC, EDQUOT, EFBIG)
"""The errors of a full disk, a used quota, and a file that exceeds the limit for files (``ulimit -f``)."""


@contextmanager
def naming(
    path: str | PathLike[str], temporary: PathLike[str] | None = None
) -> Iterator[None]:
    """Put the name ``path`` into an OSError of the with block that names no file or the file ``temporary``.

    Of errors without a name, only those of `FULL` are named: they come from writing.
    """
    try:
        yield
    except OSError as error:
        is_temporary = temporary is not None and error.filename == str(temporary)
        if is_temporary or (error.filename is None and error.errno in FULL):
            error.filename = str(path)
        raise
