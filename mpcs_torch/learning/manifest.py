"""The ledger of a folder of checkpoints: which epochs were, which files are whose, what was about to happen."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpcs_torch.learning.atomic_files import holds, rename, write_whole
from mpcs_torch.learning.selection import Epoch

NAME = "manifest.json"
TEMPORARY_NAME = f".{NAME}.tmp"


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


@dataclass(frozen=True)
class Manifest:
    """What a restart must know."""

    rule: Mapping[str, Any]
    epochs: Sequence[SavedEpoch]
    """In the order of the updates."""
    pending: SavedEpoch | None = None
    """Its checkpoint is whole, under its temporary name or its own, but the epoch is not entered yet."""
    garbage: Sequence[SavedEpoch] = ()
    """Their files may still be there, and are to go."""

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest by this one, whole."""
        text = json.dumps({"format": 1, **asdict(self)}, indent=1) + "\n"
        write_whole(folder / TEMPORARY_NAME, lambda file: file.write(text.encode()))
        rename(folder / TEMPORARY_NAME, folder / NAME)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the folder's manifest.

        Raises:
            ValueError: If the file is something else.
        """
        path = folder / NAME
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            pending = None if plain["pending"] is None else SavedEpoch(**plain["pending"])
            epochs, garbage = ([SavedEpoch(**entry) for entry in plain[key]] for key in ("epochs", "garbage"))
            return cls(dict(plain["rule"]), epochs, pending, garbage)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} must be the manifest of a CheckpointSelector, but cannot be read: {error!r}."
            ) from None


def delete_checkpoints(folder: Path) -> None:
    """Delete the manifest of a folder and the files that it owns, and no others."""
    if not (folder / NAME).exists():
        return
    found = Manifest.read(folder)
    for entry in (*found.epochs, *found.garbage, found.pending):
        if entry is not None and entry.file is not None and holds(folder / entry.file, entry.sha256):
            (folder / entry.file).unlink()
    (folder / NAME).unlink()
