"""Files that are there whole or not at all, whenever the process dies."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> str:
    """Let ``write`` fill a new file, bring it to the disk, and give its SHA-256; on an error nothing is left."""
    try:
        with path.open("w+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except RuntimeError as error:
        path.unlink(missing_ok=True)
        if isinstance(error.__context__, OSError):  # torch fails again when it closes what it could not write
            raise error.__context__ from None
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_text(path: Path, text: str) -> None:
    """Make this the whole text of a file, old or new."""
    temporary = path.with_name(f".{path.name}.tmp")
    write_whole(temporary, lambda file: file.write(text.encode()))
    rename(temporary, path)


def rename(source: Path, target: Path) -> None:
    """Give a whole file its name, for good once this returns."""
    os.replace(source, target)
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def holds(path: Path, sha256: str) -> bool:
    """Whether a file is there with this content."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False
