"""Write files atomically: a file is complete or absent, even if the process dies.

Files are flushed to disk to survive a power failure. This takes milliseconds; ``flush=False`` skips it.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mpcs_torch.errors import MpcsError

try:
    import fcntl
except ImportError:  # Windows has no such locks: never refuse
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> str:
    """Create a file with the content that ``write`` writes, and return its SHA-256; after an error, delete it."""
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
        first = error.__context__  # torch raises a second error on closing the file
        if isinstance(first, OSError) or not isinstance(first, Exception | None):  # an interrupt
            raise first from None
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> None:
    """Replace or create ``path`` atomically with the content that ``write`` writes; after an error nothing changes."""
    replace_together({path: write}, flush=flush)


def replace_together(writers: Mapping[Path, Callable[[BinaryIO], object]], *, flush: bool = True) -> None:
    """Replace or create files as `replace_whole` does, but only after all new contents have been written."""
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
    """Replace or create a text file atomically."""
    replace_whole(path, lambda file: file.write(text.encode()), flush=flush)


def append_text(path: Path, size: int, text: str, *, flush: bool = True) -> int:
    """Truncate a file to ``size`` bytes, append text, and return the new size; a crash may leave incomplete text."""
    with path.open("r+b") as file:
        file.truncate(size)
        file.seek(size)
        file.write(text.encode())
        file.flush()
        if flush:
            os.fsync(file.fileno())
        return file.tell()


def rename(source: Path, target: Path, *, flush: bool = True) -> None:
    """Rename a file; with ``flush``, the new name is on disk when the function returns."""
    os.replace(source, target)
    if flush:
        flush_paths([target.parent])


def flush_paths(paths: Iterable[Path]) -> None:
    """Flush files and folders to disk; do nothing on Windows, which flushes only files that are open for writing."""
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


class FolderInUseError(MpcsError, RuntimeError):
    """Another process writes to the folder."""


_handles: dict[tuple[int, Path], list[int]] = {}
"""The file descriptor of each locked folder, once for each `acquire` without a `release`. The folders themselves are
locked, so that no lock file is left behind. The keys contain the process, because a forked child inherits no lock."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against writes by other processes, but not by this process; create a missing folder."""
    acquire(folder)
    try:
        yield
    finally:
        release(folder)


def acquire(folder: Path) -> None:
    """Lock a folder until `release` or the end of this process; raise `FolderInUseError` if it is locked elsewhere."""
    if fcntl is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    key = (os.getpid(), folder.resolve())
    if not _handles.setdefault(key, []):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            message = f"{folder} is being written by another process: wait for it, or choose another folder"
            raise FolderInUseError(message) from None
        except OSError:  # some file systems have no locks: never refuse
            pass
        _handles[key] = [handle]
    else:
        _handles[key].append(_handles[key][0])


def release(folder: Path) -> None:
    """Undo one `acquire` of this process."""
    handles = _handles.get((os.getpid(), folder.resolve()))
    if handles and (handle := handles.pop()) not in handles:
        os.close(handle)
