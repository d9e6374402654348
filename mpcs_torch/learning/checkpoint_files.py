"""The files of a checkpoint folder: checkpoints that can be loaded again, and the manifest that lists them.

The first line of the manifest has the rule, settings and epochs; each other line records an update. A last line without
a newline is ignored, because the process died while it wrote this line.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint

from mpcs_torch.errors import InvalidValueError, quoted, shown
from mpcs_torch.io.atomic_files import append_text, create_file, holds, replace_text
from mpcs_torch.io.untrusted_files import read_limited
from mpcs_torch.learning.selection import Epoch

MANIFEST = "manifest.json"
MAX_BYTES = 200_000_000
"""The maximum size of ``manifest.json``, enough for a million epochs; the file is read into memory."""
NAMES = r"(-[1-9][0-9]*)?\.pt"
"""The pattern of a checkpoint's file name after the epoch number: a suffix for repeated epochs, and the extension."""
TEMPORARY = re.compile(
    rf"\.epoch-[0-9-]+{NAMES}\.tmp|\.{re.escape(MANIFEST)}\.[0-9a-f]+\.tmp", re.ASCII
)


@dataclass(frozen=True)
class SavedEpoch(Epoch):
    """An epoch in the manifest, with the name and hash of its checkpoint file if the file is kept."""

    file: str | None = None
    sha256: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """The number and the metric values of the epoch, to compare it with other epochs; NaN values are equal."""
        # As text, NaN equals NaN; adding 0 makes 0 of -0.
        return self.number, *sorted(
            (name, str(value + 0.0)) for name, value in self.values.items()
        )

    def without_file(self) -> "SavedEpoch":
        """Return the epoch without its checkpoint."""
        return replace(self, file=None, sha256="")

    def is_whole_in(self, folder: Path) -> bool:
        """Return whether the checkpoint file exists in ``folder`` and has the saved hash."""
        return self.file is not None and holds(folder / self.file, self.sha256)


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``, from which a selector resumes."""

    rule: Mapping[str, Any]
    settings: Mapping[str, Any]
    """The other settings of the `CheckpointSelector`."""
    epochs: Sequence[SavedEpoch]
    """All epochs of the run, in the order of the updates."""
    dropped: Sequence[SavedEpoch] = ()
    """The epochs whose files are no longer kept, but may still exist on disk."""
    size: int = 0
    """The size of all complete lines, in bytes."""

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read ``manifest.json`` in ``folder``; raise a ValueError if its content is invalid."""
        path = folder / MANIFEST
        try:
            # What follows the last end of a line is not complete.
            complete = read_limited(path, MAX_BYTES).split(b"\n")[:-1]
            first, *lines = complete or [b""]
            updates = [_update(line, number) for number, line in enumerate(lines, start=2)]
            size = len(first) + 1 + sum(len(line) + 1 for line in lines)
            if updates and _is_unfinished(folder, updates[-1].epoch):
                updates.pop()
                size -= len(lines[-1]) + 1
            plain = _parsed(first, 1)
            lacking = [name for name in ("rule", "settings", "epochs") if name not in plain]
            if lacking:
                raise InvalidValueError("keys_of_line", "its first line", missing=lacking)
            epochs, garbage = list[SavedEpoch](), list[SavedEpoch]()
            places: dict[object, int] = {}
            for epoch, dropped in [
                *(Update(_saved_epoch(entry)) for entry in plain["epochs"]),
                *updates,
            ]:
                places[epoch.file] = len(epochs)
                epochs.append(epoch)
                for file in dropped:
                    place = places.pop(file)
                    garbage.append(epochs[place])
                    epochs[place] = epochs[place].without_file()
            return cls(dict(plain["rule"]), dict(plain["settings"]), epochs, garbage, size)
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise damaged(path, error) from None

    def write(self, folder: Path, *, flush: bool) -> None:
        """Replace ``manifest.json`` in ``folder`` atomically by a line with the rule, the settings and all epochs."""
        plain = {
            "format": 2,
            "rule": self.rule,
            "settings": self.settings,
            "epochs": list(self.epochs),
        }
        replace_text(folder / MANIFEST, json.dumps(plain, default=vars) + "\n", flush=flush)


def free_name(folder: Path, number: int, listed: Collection[str]) -> str:
    """Return a name for the checkpoint of an epoch that no file in ``folder`` has, and that is not ``listed``."""
    stem = f"epoch-{number:05}"
    name = f"{stem}.pt"
    repeats = 1
    while name in listed or (folder / name).exists():
        repeats += 1
        name = f"{stem}-{repeats}.pt"
    return name


def damaged(path: Path, error: Exception) -> InvalidValueError:
    """Return the error that says that the manifest ``path`` cannot be used because of ``error``, and what to do."""
    problem = (
        str(error)
        if type(error) is InvalidValueError
        else f"{type(error).__name__}: {error}"
    )
    return InvalidValueError("manifest", str(path), cause=shown(problem.rstrip(".")))


class Update(NamedTuple):
    """One call of `CheckpointSelector.update`. The manifest records it as one line."""

    epoch: SavedEpoch
    dropped: Sequence[str] = ()
    """The names of the checkpoint files that this update no longer keeps."""


def append(folder: Path, size: int, update: "Update", *, flush: bool) -> int:
    """Cut ``manifest.json`` to ``size`` bytes, append ``update`` as a line, and return the new size in bytes."""
    epoch = update.epoch
    plain: dict[str, Any] = {"number": epoch.number, "values": epoch.values}
    if epoch.file is not None:
        plain |= {"file": epoch.file, "sha256": epoch.sha256}
    if update.dropped:
        plain["dropped"] = update.dropped
    return append_text(folder / MANIFEST, size, json.dumps(plain) + "\n", flush=flush)


def temporary_path(folder: Path, epoch: SavedEpoch) -> Path:
    """Return the path of the temporary file to which a checkpoint is written before it is renamed."""
    return folder / f".{epoch.file}.tmp"


def _is_unfinished(folder: Path, epoch: SavedEpoch) -> bool:
    """Return whether a process recorded ``epoch``, but died before it renamed the temporary checkpoint file."""
    return (
        epoch.file is not None
        and temporary_path(folder, epoch).exists()
        and not (folder / epoch.file).exists()
    )


def _parsed(line: bytes, number: int) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except ValueError:
        raise InvalidValueError("json_line", f"line {number}") from None


def _update(line: bytes, number: int) -> "Update":
    plain = _parsed(line, number)
    dropped = list(plain.pop("dropped", []))
    return Update(_saved_epoch(plain), dropped)


def _saved_epoch(plain: Any) -> SavedEpoch:
    epoch = SavedEpoch(**plain)
    number, file = epoch.number, epoch.file
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidValueError("whole", "the number of an epoch", number)
    if file is not None and not (
        isinstance(file, str) and re.fullmatch(rf"epoch-{number:05}{NAMES}", file, re.ASCII)
    ):
        raise InvalidValueError(
            "named_after_epoch", f"the file of epoch {quoted(number)}", file
        )
    if not isinstance(epoch.sha256, str):
        raise InvalidValueError("text", "sha256", epoch.sha256)
    if not isinstance(epoch.values, dict):
        raise InvalidValueError(
            "mapping", f"the values of epoch {quoted(number)}", epoch.values
        )
    for name, value in epoch.values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidValueError(
                "number", f"{quoted(name)} of epoch {quoted(number)}", value
            )
    return replace(
        epoch, values={name: float(value) for name, value in epoch.values.items()}
    )


def delete_checkpoints(folder: Path) -> None:
    """Delete ``manifest.json`` in ``folder`` and the intact checkpoints that it lists, but no other files."""
    if not (folder / MANIFEST).exists():
        return
    saved = Manifest.read(folder)
    for entry in (*saved.epochs, *saved.dropped):
        if entry.is_whole_in(folder):
            (folder / str(entry.file)).unlink()
    (folder / MANIFEST).unlink()


def delete_files(folder: Path, epochs: Sequence[SavedEpoch]) -> list[SavedEpoch]:
    """Delete the checkpoint files of ``epochs``; return those ``epochs`` whose files still exist."""
    for epoch in epochs:
        with suppress(OSError):
            (folder / str(epoch.file)).unlink()
    return [epoch for epoch in epochs if (folder / str(epoch.file)).exists()]


def save_state(state: object, path: Path, *, weights_only: bool, flush: bool) -> str:
    """Write ``state`` to the file ``path``, verify that the file can be loaded, and return its SHA-256 hash.

    Raises:
        ValueError: If ``state`` cannot be saved, or cannot be loaded again; no file remains.
        OSError: If the file cannot be written.
    """
    if state is None:
        raise InvalidValueError("some_state", "state")
    try:
        leaves = list(_leaves(state))
    except RecursionError:
        raise InvalidValueError("no_recursion", "state") from None
    for place, value in leaves:
        if type(value).__name__ in ("DTensor", "ShardedTensor"):
            raise InvalidValueError("whole_tensor", place, type=type(value).__name__)
        if isinstance(value, Tensor) and value.is_meta:
            raise InvalidValueError("has_values", place)
    try:
        sha256 = create_file(path, lambda file: torch.save(state, Sink(file)), flush=flush)  # type: ignore[arg-type]
    except (OSError, MemoryError):
        raise
    except Exception as error:  # pickle and torch raise many kinds of errors
        raise InvalidValueError(
            "cannot_be_saved", _blame(leaves, torch.save), cause=shown(str(error))
        ) from error
    load = partial(torch.load, map_location="cpu", weights_only=weights_only)
    try:
        load(path, mmap=True)  # reads no values of tensors
        return sha256
    except Exception:  # torch raises many kinds
        unsafe = "its structure"
        with suppress(Exception):  # torch may fail to read its own file
            unsafe = ", ".join(sorted(get_unsafe_globals_in_checkpoint(path))) or unsafe
    path.unlink()

    def save_and_load(value: object, file: BytesIO) -> None:
        torch.save(value, file)
        file.seek(0)
        load(file)

    code = "loads_by_weights_only" if weights_only else "loads_again"
    raise InvalidValueError(code, _blame(leaves, save_and_load), unsafe=shown(unsafe))


class Sink:
    """A file that ignores writes after it is closed: after an interrupt, torch still writes to the closed file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, content: bytes) -> int:
        """Write the bytes, or ignore them if the file is closed."""
        return len(content) if self._file.closed else self._file.write(content)

    def flush(self) -> None:
        """Flush the file."""
        if not self._file.closed:
            self._file.flush()


def _leaves(state: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Yield the path (such as ``state['model']``) and the value of each leaf of nested dictionaries and sequences."""
    if type(state) not in (dict, OrderedDict, list, tuple):
        yield path, state
        return
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        yield from _leaves(value, f"{path}[{key!r}]")


def _blame(leaves: list[tuple[str, Any]], fails: Callable[[object, Any], None]) -> str:
    """Return the path and type of the first leaf for which ``fails`` raises an error, as text for an error message."""
    for path, value in leaves:
        try:
            fails({"": value} if isinstance(value, Tensor) else value, BytesIO())
        except Exception:
            return f"{path}, a {type(value).__module__}.{type(value).__qualname__},"
    return "state"
