"""Save a state to a file only if it can be loaded again; otherwise raise an error that names the bad entry."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.io.atomic_files import write_whole


class StateError(MpcsError, ValueError):
    """A state that cannot be saved or loaded again."""


def save_state(state: object, path: Path, *, weights_only: bool, flush: bool) -> str:
    """Write a state to a file, verify that the file can be loaded, and return its SHA-256.

    Raises:
        StateError: If the state could not be loaded again; no file remains.
        OSError: If the file cannot be written.
    """
    try:
        leaves = list(_leaves(state))
    except RecursionError:
        raise StateError("state must not contain itself or be nested deeper than Python's recursion limit.") from None
    for place, value in leaves:
        if type(value).__name__ in ("DTensor", "ShardedTensor"):
            gather = "pass update a function that gathers it (get_model_state_dict with full_state_dict=True)"
            raise StateError(f"{place} must be a whole tensor, but is a {type(value).__name__}: {gather}.")
        if isinstance(value, Tensor) and value.is_meta:
            raise StateError(f"{place} must have values, but is on the meta device, which has none.")
    try:
        sha256 = write_whole(path, lambda file: torch.save(state, Sink(file)), flush=flush)  # type: ignore[arg-type]
    except (OSError, MemoryError):
        raise
    except Exception as error:  # pickle and torch raise many kinds of errors
        raise StateError(f"{_blame(leaves, torch.save)} cannot be saved: {shown(str(error))}") from error
    load = partial(torch.load, map_location="cpu", weights_only=weights_only)
    try:
        load(path, mmap=True)  # reads no values of tensors
        return sha256
    except Exception:  # torch raises many kinds
        unsafe = "its structure"
        with suppress(Exception):  # torch may fail to read its own file
            unsafe = ", ".join(sorted(get_unsafe_globals_in_checkpoint(path))) or unsafe
    path.unlink()
    remedy = "convert it to tensors, numbers, text, lists and dictionaries"
    remedy += ", or create the selector with weights_only=False" if weights_only else ""
    how = " with weights_only=True" if weights_only else ""

    def save_and_load(value: object, file: BytesIO) -> None:
        torch.save(value, file)
        file.seek(0)
        load(file)

    entry = _blame(leaves, save_and_load)
    raise StateError(f"{entry} cannot be loaded again{how}, because of {shown(unsafe)}: {remedy}.")


class Sink:
    """A wrapper that ignores writes after its file is closed, because torch writes once more after an interrupt."""

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
    """Yield the path, such as ``state['model']``, and the value of each leaf of nested containers."""
    if type(state) not in (dict, OrderedDict, list, tuple):
        yield path, state
        return
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        yield from _leaves(value, f"{path}[{key!r}]")


def _blame(leaves: list[tuple[str, Any]], fails: Callable[[object, Any], None]) -> str:
    """Return the path and type of the first leaf for which ``fails`` raises, as text for an error message."""
    for path, value in leaves:
        try:
            fails({"": value} if isinstance(value, Tensor) else value, BytesIO())
        except Exception:
            return f"{path}, a {type(value).__module__}.{type(value).__qualname__},"
    return "state"
