"""Write files: the only place of the package that opens a file for writing.

Files are complete or absent, even if the process dies: they are written under a temporary name and then renamed. With
``flush=True``, they also survive a power failure. Flushing to disk takes milliseconds.
"""

import hashlib
import os
import secrets
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from mpcs_torch.errors import CodedError, InvalidValueError
from mpcs_torch.io.named_errors import naming
from mpcs_torch.io.untrusted_files import FileRuleError, check_regular

try:
    import fcntl
except ImportError:  # Windows has no such locks, so folders are not locked
    fcntl = None  # type: ignore[assignment]

Write = Callable[[BinaryIO], object]
"""A function that writes the content of a file."""
NEW = (
    os.O_CREAT
    | os.O_EXCL
    | os.O_RDWR
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
"""Flags that create a file: they follow no link, and fail if there is a file of this name."""
STALE_SECONDS = 86_400
"""The age from which a temporary file is that of a writer that was killed."""


def output_path(path: Path) -> Path:
    """Return the file that is written if a user names ``path``: if this is a link, the file to which it leads.

    Raises:
        ValueError: If there is something else than a regular file.
    """
    target = Path(os.path.realpath(path))
    if target.exists():
        try:
            check_regular(target)
        except FileRuleError as error:
            raise InvalidValueError(
                "caused_by", f"{path}: an output", cause=error
            ) from None
    return target


def create_file(path: Path, write: Write, *, flush: bool = True) -> str:
    """Create ``path`` with the content that ``write`` writes; return its SHA-256. After an error, delete the file.

    A file or link that has this name already is deleted first.
    """
    path.unlink(missing_ok=True)
    with naming(path):
        try:
            with os.fdopen(os.open(path, NEW, 0o666), "w+b") as file:
                write(file)
                file.flush()
                if flush:
                    os.fsync(file.fileno())
                file.seek(0)
                return hashlib.file_digest(file, "sha256").hexdigest()
        except RuntimeError as error:
            path.unlink(missing_ok=True)
            # On closing the file, torch raises a second error in place of the first, which is its context.
            first = error.__context__
            if isinstance(first, OSError):
                raise first from None
            if first is not None and not isinstance(first, Exception):  # KeyboardInterrupt
                raise first from None
            raise
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def replace_file(path: Path, write: Write, *, flush: bool = True) -> None:
    """Replace or create ``path`` atomically by the content that ``write`` writes. Errors leave the old file.

    If several processes write to ``path`` at the same time, the last complete file remains. A link is written through
    to its target. An existing file keeps its mode.

    Raises:
        ValueError: If ``path`` is not a regular file.
    """
    replace_files({path: write}, flush=flush)


def replace_files(writers: Mapping[Path, Write], *, flush: bool = True) -> None:
    """Replace or create each path in ``writers`` as `replace_file` does, once all new contents are written."""
    temporaries: dict[Path, Path] = {}
    try:
        for path, write in writers.items():
            target = output_path(path)
            delete_stale(target)
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
            temporaries[target] = temporary
            with naming(path, temporary):
                create_file(temporary, write, flush=flush)
                if target.exists():
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        for target, temporary in temporaries.items():
            with naming(target, temporary):
                rename(temporary, target, flush=flush)
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def delete_stale(target: Path, seconds: float = STALE_SECONDS) -> None:
    """Delete temporary files of writers of ``target`` that were killed: all that are older than ``seconds``."""
    for temporary in target.parent.glob(f".{target.name.translate(GLOB)}.????????.tmp"):
        with suppress(OSError):
            if time.time() - temporary.stat().st_mtime > seconds:
                temporary.unlink()


GLOB = str.maketrans({"*": "[*]", "?": "[?]", "[": "[[]"})
"""The characters of a file name that stand for other names in a pattern, and how they are written literally."""


def replace_text(path: Path, text: str, *, flush: bool = True) -> None:
    """Replace or create ``path`` atomically by ``text`` in UTF-8."""
    replace_file(path, lambda file: file.write(text.encode()), flush=flush)


def save_figure(figure: Any, path: Path) -> None:
    """Replace or create ``path`` atomically by a matplotlib figure, in the format that its suffix names."""
    kind = path.suffix.removeprefix(".")
    # Without a date, the same figure gives the same file.
    metadata = {"Date": None} if kind == "svg" else {}

    def write(file: BinaryIO) -> None:
        figure.savefig(file, format=kind, dpi=110, metadata=metadata)

    replace_file(path, write)


@contextmanager
def open_lines(path: Path, *, append: bool) -> Iterator[TextIO]:
    """Open a text file whose lines are on disk as soon as they are complete; ``append`` to it, or create it.

    Raises:
        FileExistsError: If the file exists, and ``append`` is not set.
        ValueError: If ``path`` is not a regular file.
    """
    with naming(path):
        if append:
            file = output_path(path).open("a", buffering=1, newline="", encoding="utf-8")
        else:
            handle = os.open(path, NEW, 0o666)
            file = os.fdopen(handle, "w", buffering=1, newline="", encoding="utf-8")
        with file:
            yield file


def append_text(path: Path, size: int, text: str, *, flush: bool) -> int:
    """Cut a file to ``size`` bytes, append ``text``, and return the new size. A crash may leave only part of it."""
    with naming(path), path.open("r+b") as file:
        file.truncate(size)
        file.seek(size)
        file.write(text.encode())
        file.flush()
        if flush:
            os.fsync(file.fileno())
        return file.tell()


def rename(source: Path, target: Path, *, flush: bool = True) -> None:
    """Rename ``source`` to ``target``. With ``flush``, the new name is on disk when the function returns."""
    os.replace(source, target)
    if flush:
        flush_paths([target.parent])


def flush_paths(paths: Iterable[Path]) -> None:
    """Flush files and folders to disk. Do nothing on Windows, which can flush only files open for writing."""
    if os.name != "posix":
        return
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            with naming(path):
                os.fsync(handle)
        finally:
            os.close(handle)


def holds(path: Path, sha256: str) -> bool:
    """Return whether the regular file ``path`` exists and has the hash ``sha256``."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except (OSError, FileRuleError):
        return False


class FolderInUseError(CodedError, RuntimeError):
    """The error raised if another process has locked a folder in order to write to it."""


@dataclass
class _Lock:
    """A lock of a folder by this process."""

    handle: int
    """The file descriptor of the folder."""
    uses: int
    """The number of calls of `acquire` without one of `release`."""


_locks: dict[tuple[int, Path], _Lock] = {}
"""The locks by process id and folder, because a forked child does not inherit the locks of its parent."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock ``folder`` against other processes within a with block; create a missing folder."""
    acquire(folder)
    try:
        yield
    finally:
        release(folder)


def acquire(folder: Path) -> None:
    """Lock ``folder`` until `release` or the process ends; raise `FolderInUseError` if another process holds it.

    Warn if the file system cannot lock it.
    """
    if fcntl is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    key = (os.getpid(), folder.resolve())
    if key in _locks:
        _locks[key].uses += 1
        return
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FolderInUseError("in_use", str(folder)) from None
    except OSError as error:  # some file systems, such as of networks, cannot lock folders
        remedy = "make sure that no other process writes to it"
        warnings.warn(
            f"{folder} cannot be locked ({error.strerror}): {remedy}", stacklevel=2
        )
    _locks[key] = _Lock(handle, uses=1)


def release(folder: Path) -> None:
    """Undo one call of `acquire` for ``folder``. Once all calls of this process are undone, the folder is unlocked."""
    key = (os.getpid(), folder.resolve())
    if key not in _locks:
        return
    lock = _locks[key]
    lock.uses -= 1
    if lock.uses == 0:
        del _locks[key]
        os.close(lock.handle)
