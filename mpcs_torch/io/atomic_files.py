"""Write files atomically: a file is complete or absent, even if the process dies.

Files are flushed to disk, which takes milliseconds, so that they also survive a power failure; ``flush=False`` is for
those that nobody needs after one.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> str:
    """Let ``write`` fill a new file, and return its SHA-256; after an error no file remains."""
    try:
        with path.open("w+b") as file:
            write(file)
            file.flush()
            if flush:
                os.fsync(file.fileno())
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except RuntimeError as error:
        path.unlink(missing_ok=True)
        first = error.__context__  # torch raises a second error when it closes the file
        if isinstance(first, OSError) or not isinstance(first, Exception | None):  # an interrupt
            raise first from None
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> None:
    """Let ``write`` fill a file that replaces ``path``, or creates it, in one step; after an error nothing changes."""
    replace_together({path: write}, flush=flush)


def replace_together(writers: Mapping[Path, Callable[[BinaryIO], object]], *, flush: bool = True) -> None:
    """Replace or create files as `replace_whole` does, but only after all could be written."""
    temporaries = {path: path.with_name(f".{path.name}.tmp") for path in writers}
    try:
        for path, write in writers.items():
            write_whole(temporaries[path], write, flush=flush)
    except BaseException:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        raise
    for path, temporary in temporaries.items():
        rename(temporary, path, flush=flush)


def replace_text(path: Path, text: str, *, flush: bool = True) -> None:
    """Replace the text of a file, or create the file, in one step."""
    replace_whole(path, lambda file: file.write(text.encode()), flush=flush)


def append_text(path: Path, size: int, text: str, *, flush: bool = True) -> int:
    """Put a text behind the first bytes of a file; return its new size. Whoever reads it must bear half a text."""
    with path.open("r+b") as file:
        file.truncate(size)
        file.seek(size)
        file.write(text.encode())
        file.flush()
        if flush:
            os.fsync(file.fileno())
        return file.tell()


def rename(source: Path, target: Path, *, flush: bool = True) -> None:
    """Rename a file; with ``flush``, the new name is on disk when this returns."""
    os.replace(source, target)
    if flush:
        flush_paths([target.parent])


def flush_paths(paths: Iterable[Path]) -> None:
    """Wait until files, and the names in folders, are on disk; Windows flushes only what is open for writing."""
    for path in paths if os.name == "posix" else ():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def holds(path: Path, sha256: str) -> bool:
    """Return whether a file exists and has this SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
