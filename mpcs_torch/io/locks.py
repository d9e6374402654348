"""One writing process for each folder: a lock that dies with its holder."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpcs_torch.errors import MpcsError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nobody is refused
    fcntl = None  # type: ignore[assignment]


class FolderInUseError(MpcsError, RuntimeError):
    """Another process writes to the folder."""


_handles: dict[tuple[int, Path], int] = {}
"""Of the folders that are held themselves, so that a lock leaves no file behind.

By process, because a forked child inherits this and does not hold the folder.
"""
_holds: Counter[tuple[int, Path]] = Counter()
"""The number of times that this process holds each of them."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes, but not this one, from writing to a folder, which is made if it does not exist.

    Raises:
        FolderInUseError: If another process holds the folder.
    """
    take(folder)
    try:
        yield
    finally:
        release(folder)


def take(folder: Path) -> None:
    """Hold a folder until `release`, or until this process ends, whatever ends it; see `held`."""
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
        except OSError:  # some file systems have no locks; there nobody is refused
            pass
        _handles[key] = handle
    _holds[key] += 1


def release(folder: Path) -> None:
    """Take back one `take` of this process."""
    key = (os.getpid(), folder.resolve())
    if key in _handles:
        _holds[key] -= 1
        if not _holds[key]:
            os.close(_handles.pop(key))
