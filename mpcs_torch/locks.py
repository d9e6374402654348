"""One writing process for each folder: a lock that dies with its holder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mpcs_torch.errors import MpcsError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nobody is refused
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
"""The locked file in the folder; it holds the number of the process."""


class FolderInUseError(MpcsError, RuntimeError):
    """Another process writes to the folder."""


@dataclass
class _Held:
    file: int
    """Closing any handle of the file would unlock it, so all users in this process share one."""
    users: int = 1


_held: dict[tuple[int, Path], _Held] = {}
"""By process, because a forked child inherits this and no lock."""


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
    if key in _held:
        _held[key].users += 1
        return
    file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(file, 20).decode("ascii", "replace").strip() or "unknown"
        os.close(file)
        message = f"{folder} is being written by process {holder}: wait for it, or choose another folder"
        raise FolderInUseError(message) from None
    os.ftruncate(file, 0)
    os.write(file, f"{os.getpid()}\n".encode())
    _held[key] = _Held(file)


def release(folder: Path) -> None:
    """Take back one `take` of this process."""
    key = (os.getpid(), folder.resolve())
    if key in _held:
        _held[key].users -= 1
        if not _held[key].users:
            os.close(_held.pop(key).file)
