"""Write files atomically: a file is complete or absent, even if the process dies.

With ``flush=True``, files also survive a power failure. Flushing to disk takes milliseconds.
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
except ImportError:  # Windows has no such locks, so folders are not locked
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> str:
    """Create ``path`` with the content that ``write`` writes; return its SHA-256. After an error, delete the file."""
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
        if isinstance(first, OSError) or not isinstance(first, Exception | None):  # for example, KeyboardInterrupt
            raise first from None
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_whole(path: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> None:
    """Replace or create ``path`` atomically by the content that ``write`` writes. Errors leave the old file."""
    replace_together({path: write}, flush=flush)


def replace_together(writers: Mapping[Path, Callable[[BinaryIO], object]], *, flush: bool = True) -> None:
    """Replace or create each path in ``writers`` as `replace_whole` does, once all new contents are written."""
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
    """Replace or create ``path`` atomically by ``text`` in UTF-8."""
    replace_whole(path, lambda file: file.write(text.encode()), flush=flush)


def append_text(path: Path, size: int, text: str, *, flush: bool = True) -> int:
    """Cut a file to ``size`` bytes, append ``text``, and return the new size. A crash may leave only part of it."""
    with path.open("r+b") as file:
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
    for path in paths if os.name == "posix" else ():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def holds(path: Path, sha256: str) -> bool:
    """Return whether the file ``path`` exists and has the hash ``sha256``."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


class FolderInUseError(MpcsError, RuntimeError):
    """The error raised if another process has locked a folder in order to write to it."""


_handles: dict[tuple[int, Path], list[int]] = {}
"""The file descriptor of each locked folder, repeated for each `acquire` without a `release`. Keys are process id and
folder, because a forked child does not inherit the locks of its parent."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock ``folder`` against other processes within a with block; create a missing folder."""
    acquire(folder)
    try:
        yield
    finally:
        release(folder)


def acquire(folder: Path) -> None:
    """Lock ``folder`` until `release` or the process ends; raise `FolderInUseError` if another process holds it."""
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
        except OSError:  # this file system has no locks, so the folder is not locked
            pass
        _handles[key] = [handle]
    else:
        _handles[key].append(_handles[key][0])


def release(folder: Path) -> None:
    """Undo one call of `acquire` for ``folder``. Once all calls of this process are undone, the folder is unlocked."""
    handles = _handles.get((os.getpid(), folder.resolve()))
    if handles and (handle := handles.pop()) not in handles:
        os.close(handle)
