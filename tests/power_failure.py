"""The contents that a power failure would leave of a folder, at each moment while something writes to it.

A file has the bytes that it had when it was last flushed, or none. New names, renames and deletions are certain once
their folder is flushed; before, each of them may be lost or not. Two things are taken for certain that POSIX leaves
open, because the file systems of Linux see to them: the name of a new file once the file is flushed, and new folders.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import mpcs_torch
from mpcs_torch.io import atomic_files as files

Image = dict[str, bytes]
"""The bytes of each file by its path inside the folder."""
PACKAGE = Path(mpcs_torch.__file__).parent
MAX_CHANGES = 5
"""All ways to lose some of the changes that wait for a flush are tried up to this many of them; then some ways are."""


@dataclass(eq=False)
class _File:
    flushed: bytes = b""


@dataclass
class Disk:
    """A folder whose flushes, renames and deletions are followed."""

    folder: Path
    images: list[Image] = field(default_factory=list)
    """All that a power failure could have left since this list was last emptied."""
    modules: set[str] = field(default_factory=set)
    """The modules of the package that have flushed or renamed something, without `files` itself."""

    def __post_init__(self) -> None:
        self._names = {path: _File(path.read_bytes()) for path in self._paths()}
        self._certain = dict(self._names)
        self._waiting: list[dict[Path, _File | None]] = []
        """Changes of names in their order: the file that a path then leads to."""

    def possible_images(self) -> list[Image]:
        """Return all that a power failure could leave now."""
        self._look()
        found: list[Image] = []
        for are_kept in _ways_to_lose(len(self._waiting)):
            names: dict[Path, _File | None] = {**self._certain}
            for change, is_kept in zip(self._waiting, are_kept, strict=True):
                if is_kept:
                    names |= change
            image = {
                str(path.relative_to(self.folder)): file.flushed
                for path, file in names.items()
                if file
            }
            if image not in found:
                found.append(image)
        return found

    def flush(self, handle: int) -> None:
        """Follow a flush of a file or folder, which needs not be done: nothing fails here."""
        self._look()
        status = os.fstat(handle)
        for path in [self.folder, *self.folder.rglob("*")]:
            if os.path.samestat(path.stat(), status):
                if path.is_file():
                    self._names[path].flushed = path.read_bytes()
                self._make_certain(path)
                self._happened()

    def rename(self, source: Any, target: Any) -> None:
        """Rename a file, and follow it."""
        self._look()
        _REPLACE(source, target)
        file = self._names.pop(Path(source), None)
        if file is not None:
            self._names[Path(target)] = file
            self._waiting.append({Path(source): None, Path(target): file})
            self._happened()

    def delete(self, path: Any, **options: Any) -> None:
        """Delete a file, and follow it."""
        self._look()
        _UNLINK(path, **options)
        if self._names.pop(Path(path), None) is not None:
            self._waiting.append({Path(path): None})
            self._happened()

    def _paths(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def _look(self) -> None:
        """Take note of new files."""
        for path in self._paths():
            if path not in self._names:
                self._names[path] = _File()
                self._waiting.append({path: self._names[path]})

    def _make_certain(self, flushed: Path) -> None:
        """Make the changes of a name certain, or those of all names in a folder."""
        for change in list(self._waiting):
            if not any(flushed in (path, path.parent) for path in change):
                continue
            self._waiting.remove(change)
            for path, file in change.items():
                self._certain.pop(path, None)
                if file is not None:
                    self._certain[path] = file

    def _happened(self) -> None:
        self.images += [
            image for image in self.possible_images() if image not in self.images
        ]
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE) and path != Path(files.__file__):
                self.modules.add(str(path.relative_to(PACKAGE)))
                return
            frame = frame.f_back


def _ways_to_lose(changes: int) -> Iterator[Sequence[bool]]:
    """Yield which changes are kept: with many, those up to one, all but one, or one alone."""
    if changes <= MAX_CHANGES:
        yield from product([True, False], repeat=changes)
        return
    for place in range(changes):
        yield [other <= place for other in range(changes)]
        yield [other != place for other in range(changes)]
        yield [other == place for other in range(changes)]


_REPLACE, _UNLINK = os.replace, os.unlink


@contextmanager
def power_may_fail(folder: Path) -> Iterator[Disk]:
    """Follow what is flushed, renamed and deleted in a folder; the disk itself is not waited for."""
    disk = Disk(folder)
    with ExitStack() as stack:
        for name, follow in (
            ("fsync", disk.flush),
            ("replace", disk.rename),
            ("rename", disk.rename),
            ("unlink", disk.delete),
            ("remove", disk.delete),
        ):
            stack.enter_context(patch.object(os, name, follow))
        yield disk


def image_of(folder: Path) -> Image:
    """Return the files of a folder as they are."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def restore(image: Image, folder: Path) -> Path:
    """Write what a power failure left to a new folder."""
    for name, content in image.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
