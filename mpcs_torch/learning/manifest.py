"""The ledger of a folder of checkpoints: which epochs were, which files are whose, what was about to happen."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpcs_torch.errors import MpcsError
from mpcs_torch.files import holds, replace_text
from mpcs_torch.learning.selection import Epoch


class ManifestError(MpcsError, ValueError):
    """A manifest that cannot be read, or that belongs to another rule."""


NAME = "manifest.json"
TEMPORARY_FILES = (".epoch-*.pt.tmp", f".{NAME}.tmp")
"""Patterns of what a process that died may leave."""


@dataclass(frozen=True)
class SavedEpoch(Epoch):
    """An epoch in the ledger, and its checkpoint while that is kept."""

    file: str | None = None
    sha256: str = ""

    def is_same(self, other: Epoch) -> bool:
        """Whether number and values are equal, NaN to NaN."""
        return json.dumps([self.number, dict(self.values)], sort_keys=True) == json.dumps(
            [other.number, dict(other.values)], sort_keys=True
        )

    def is_whole_in(self, folder: Path) -> bool:
        """Whether its checkpoint is there as it was saved."""
        return self.file is not None and holds(folder / self.file, self.sha256)


@dataclass(frozen=True)
class Manifest:
    """What a restart must know."""

    rule: Mapping[str, Any]
    epochs: Sequence[SavedEpoch]
    """In the order of the updates."""
    pending: SavedEpoch | None = None
    """An epoch that is to be entered; it counts once its checkpoint has its name."""
    garbage: Sequence[SavedEpoch] = ()
    """Their files may still be there, and are to go."""

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest by this one, whole."""
        text = json.dumps({"format": 1, **asdict(self)}, indent=1) + "\n"
        replace_text(folder / NAME, text)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the folder's manifest.

        Raises:
            ManifestError: If the file is something else.
        """
        path = folder / NAME
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            pending = None if plain["pending"] is None else SavedEpoch(**plain["pending"])
            epochs, garbage = ([SavedEpoch(**entry) for entry in plain[key]] for key in ("epochs", "garbage"))
            return cls(dict(plain["rule"]), epochs, pending, garbage)
        except (ValueError, KeyError, TypeError) as error:
            raise ManifestError(
                f"{path} must be the manifest of a CheckpointSelector, but cannot be read: {error!r}."
            ) from None


def temporary_name(epoch: int) -> str:
    """The name of a checkpoint that is being written."""
    return f".epoch-{epoch:0>5}.pt.tmp"


def free_name(folder: Path, epoch: int) -> str:
    """A name for a checkpoint that nothing in the folder has."""
    names = itertools.chain([f"epoch-{epoch:05}.pt"], (f"epoch-{epoch:05}-{n}.pt" for n in itertools.count(2)))
    return next(name for name in names if not (folder / name).exists())


def delete_checkpoints(folder: Path) -> None:
    """Delete the manifest of a folder and the files that it owns, and no others."""
    if not (folder / NAME).exists():
        return
    found = Manifest.read(folder)
    for entry in (*found.epochs, *found.garbage, found.pending):
        if entry is not None and entry.is_whole_in(folder):
            (folder / str(entry.file)).unlink()
    (folder / NAME).unlink()
