"""The manifest of a folder of checkpoints: all epochs, the file of each, and unfinished work."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from warnings import warn

from mpcs_torch.errors import MpcsError, quoted, shown
from mpcs_torch.io.atomic_files import holds, replace_text
from mpcs_torch.io.untrusted_files import read_limited
from mpcs_torch.learning.selection import Epoch


class FolderNotEmptyError(MpcsError, FileExistsError):
    """A folder for new checkpoints holds files already, perhaps those of an earlier run."""


class ManifestError(MpcsError, ValueError):
    """A manifest that cannot be read, or that was written for another rule."""


NAME = "manifest.json"
MAX_BYTES = 200_000_000
"""A million epochs; it is read and written as a whole."""
TEMPORARY_FILES = (".epoch-*.pt.tmp", f".{NAME}.tmp")
"""Patterns of the files that a process may leave when it dies."""


@dataclass(frozen=True)
class SavedEpoch(Epoch):
    """An epoch in the manifest, with its checkpoint file while that is kept."""

    file: str | None = None
    sha256: str = ""

    def is_same(self, other: Epoch) -> bool:
        """Return whether number and values are equal; NaN equals NaN."""
        if self.number != other.number or self.values.keys() != other.values.keys():
            return False
        pairs = [(value, other.values[name]) for name, value in self.values.items()]
        return all(ours == theirs or (ours != ours and theirs != theirs) for ours, theirs in pairs)

    def is_whole_in(self, folder: Path) -> bool:
        """Return whether the checkpoint file exists and is as it was saved."""
        return self.file is not None and holds(folder / self.file, self.sha256)

    def without_lost_file(self, folder: Path) -> "SavedEpoch":
        """Return the epoch, without its checkpoint if that is missing or damaged, as a warning then says."""
        if self.file is None or self.is_whole_in(folder):
            return self
        warn(f"{folder / self.file} is missing or damaged: epoch {self.number} is lost", stacklevel=5)
        return replace(self, file=None, sha256="")


@dataclass(frozen=True)
class Manifest:
    """The contents of ``manifest.json``, from which a selector resumes."""

    rule: Mapping[str, Any]
    epochs: Sequence[SavedEpoch]
    """All epochs, in the order of the updates."""
    pending: SavedEpoch | None = None
    """An epoch whose checkpoint is being saved; it counts once the file has its final name."""
    garbage: Sequence[SavedEpoch] = ()
    """Epochs whose files may still exist and will be deleted."""

    def write(self, folder: Path, *, flush: bool) -> None:
        """Replace the manifest of a folder in one step."""
        plain = {
            "format": 1,
            "rule": self.rule,
            "epochs": [vars(epoch) for epoch in self.epochs],
            "pending": None if self.pending is None else vars(self.pending),
            "garbage": [vars(epoch) for epoch in self.garbage],
        }
        replace_text(folder / NAME, json.dumps(plain) + "\n", flush=flush)  # an indent would take ten times as long

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a folder.

        Raises:
            ManifestError: If the file is not a manifest.
        """
        path = folder / NAME
        try:
            plain = json.loads(read_limited(path, MAX_BYTES).decode("utf-8"))
            pending = None if plain["pending"] is None else _saved_epoch(plain["pending"])
            epochs, garbage = ([_saved_epoch(entry) for entry in plain[key]] for key in ("epochs", "garbage"))
            return cls(dict(plain["rule"]), epochs, pending, garbage)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            problem = shown(f"{type(error).__name__}: {error}")
            raise ManifestError(f"{path} is not the manifest of a CheckpointSelector: {problem}.") from None

    def check_rule(self, folder: Path, rule: Mapping[str, Any], metrics: Sequence[str]) -> None:
        """Refuse a manifest of another rule, or one that lacks a metric of an epoch.

        Raises:
            ManifestError: In either case.
        """
        path = folder / NAME
        if self.rule != json.loads(json.dumps(rule)):
            raise ManifestError(f"{path} was written for another rule, {quoted(self.rule)}: choose another folder.")
        for epoch in [*self.epochs, *([] if self.pending is None else [self.pending])]:
            missing = [name for name in metrics if name not in epoch.values]
            if missing:
                raise ManifestError(f"{path} lacks {missing[0]} of epoch {quoted(epoch.number)}.")


def _saved_epoch(plain: Any) -> SavedEpoch:
    """Return an epoch of the manifest; a file that no selector would have named so is never touched."""
    found = SavedEpoch(**plain)
    number, file = found.number, found.file
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"the number of an epoch must be an integer, but is {quoted(number)}")
    if file is not None and not (
        isinstance(file, str) and re.fullmatch(rf"epoch-{number:05}(-[1-9][0-9]*)?\.pt", file)
    ):
        raise ValueError(f"the file of epoch {quoted(number)} must be named after it, but is {quoted(file)}")
    if not isinstance(found.sha256, str):
        raise ValueError(f"sha256 must be text, but is {quoted(found.sha256)}")
    if not isinstance(found.values, dict):
        raise ValueError(f"the values of epoch {quoted(number)} must be a mapping, but are {quoted(found.values)}")
    for name, value in found.values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{quoted(name)} of epoch {quoted(number)} must be a number, but is {quoted(value)}")
    return replace(found, values={name: float(value) for name, value in found.values.items()})


def changed_at(folder: Path) -> int:
    """Return when the manifest of a folder was last changed, in nanoseconds; 0 if there is none."""
    path = folder / NAME
    return path.stat().st_mtime_ns if path.exists() else 0


def temporary_name(epoch: int) -> str:
    """Return the name of a checkpoint while it is being written."""
    return f".epoch-{epoch:0>5}.pt.tmp"


def free_name(folder: Path, epoch: int) -> str:
    """Return a name for a checkpoint that is not taken in the folder."""
    names = itertools.chain([f"epoch-{epoch:05}.pt"], (f"epoch-{epoch:05}-{n}.pt" for n in itertools.count(2)))
    return next(name for name in names if not (folder / name).exists())


def delete_checkpoints(folder: Path) -> None:
    """Delete the manifest of a folder and the checkpoints it lists, and no other files."""
    if not (folder / NAME).exists():
        return
    found = Manifest.read(folder)
    for entry in (*found.epochs, *found.garbage, found.pending):
        if entry is not None and entry.is_whole_in(folder):
            (folder / str(entry.file)).unlink()
    (folder / NAME).unlink()


def check_empty(folder: Path) -> None:
    """Refuse a folder that holds anything: a second run must not be answered with the epochs of the first."""
    found = sorted(path.name for path in folder.iterdir())
    if NAME in found:
        held = "the checkpoints of an earlier run: pass resume=True to go on with them, or another folder"
        raise FolderNotEmptyError(f"folder must be empty, but {folder} holds {held}.")
    if found:
        raise FolderNotEmptyError(f"folder must be empty, but {folder} holds {shown(found[0])}: pass another folder.")


def delete_files(folder: Path, epochs: Sequence[SavedEpoch]) -> list[SavedEpoch]:
    """Delete the checkpoints of epochs; return those whose file could not be deleted, to be tried again."""
    for epoch in epochs:
        with suppress(OSError):
            (folder / str(epoch.file)).unlink()
    return [epoch for epoch in epochs if (folder / str(epoch.file)).exists()]


def delete_temporary_files(folder: Path) -> None:
    """Delete what a process that died was writing."""
    for path in [path for pattern in TEMPORARY_FILES for path in folder.glob(pattern)]:
        path.unlink()
