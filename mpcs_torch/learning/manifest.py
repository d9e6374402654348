"""The manifest of a folder of checkpoints: all epochs, the file of each, and unfinished work."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
        text = json.dumps({"format": 1, **vars(self)}, default=vars)  # an indent would take ten times as long
        replace_text(folder / NAME, text + "\n", flush=flush)

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


def _saved_epoch(plain: Any) -> SavedEpoch:
    """Return an epoch of the manifest; a file that no selector would have named so is never touched."""
    epoch = SavedEpoch(**plain)
    number, file = epoch.number, epoch.file
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"the number of an epoch must be an integer, but is {quoted(number)}")
    if file is not None and not (
        isinstance(file, str) and re.fullmatch(rf"epoch-{number:05}(-[1-9][0-9]*)?\.pt", file)
    ):
        raise ValueError(f"the file of epoch {quoted(number)} must be named after it, but is {quoted(file)}")
    if not isinstance(epoch.sha256, str):
        raise ValueError(f"sha256 must be text, but is {quoted(epoch.sha256)}")
    if not isinstance(epoch.values, dict):
        raise ValueError(f"the values of epoch {quoted(number)} must be a mapping, but are {quoted(epoch.values)}")
    for name, value in epoch.values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{quoted(name)} of epoch {quoted(number)} must be a number, but is {quoted(value)}")
    return replace(epoch, values={name: float(value) for name, value in epoch.values.items()})


def delete_checkpoints(folder: Path) -> None:
    """Delete the manifest of a folder and the checkpoints it lists, and no other files."""
    if not (folder / NAME).exists():
        return
    saved = Manifest.read(folder)
    for entry in (*saved.epochs, *saved.garbage, saved.pending):
        if entry is not None and entry.is_whole_in(folder):
            (folder / str(entry.file)).unlink()
    (folder / NAME).unlink()


def delete_files(folder: Path, epochs: Sequence[SavedEpoch]) -> list[SavedEpoch]:
    """Delete the checkpoints of epochs; return those whose file could not be deleted, to be tried again."""
    for epoch in epochs:
        with suppress(OSError):
            (folder / str(epoch.file)).unlink()
    return [epoch for epoch in epochs if (folder / str(epoch.file)).exists()]
