"""Lock a folder for one writing process; the lock is released when the process ends."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpcs_torch.errors import MpcsError

try:
    import fcntl
except ImportError:  # Windows has no such locks: never refuse
    fcntl = None  # type: ignore[assignment]


class FolderInUseError(MpcsError, RuntimeError):
    """Another process writes to the folder."""


_handles: dict[tuple[int, Path], int] = {}
"""The file descriptors of locked folders. The folders themselves are locked, so that no lock file is left behind.

The keys contain the process, because a forked child inherits this dictionary, but not the lock.
"""
_counts: Counter[tuple[int, Path]] = Counter()
"""The number of times that this process has acquired each lock without releasing it."""


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
    if key not in _handles:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            message = f"{folder} is being written by another process: wait for it, or choose another folder"
            raise FolderInUseError(message) from None
        except OSError:  # some file systems have no locks: never refuse
            pass
        _handles[key] = handle
    _counts[key] += 1


def release(folder: Path) -> None:
    """Undo one `acquire` of this process."""
    key = (os.getpid(), folder.resolve())
    if key in _handles:
        _counts[key] -= 1
        if not _counts[key]:
            os.close(_handles.pop(key))
