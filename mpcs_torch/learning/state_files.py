"""Save states to files that are sure to load again; a state that would not is refused, and its entry named."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.io.atomic_files import write_whole


class StateError(MpcsError, ValueError):
    """A state that cannot be saved or loaded again."""


FileFormat = Literal["pt", "safetensors"]
CONTAINERS = (dict, OrderedDict, list, tuple)
SHARDED = ("DTensor", "ShardedTensor")


class StateFiles:
    """Saves and loads states in one format."""

    def __init__(self, file_format: FileFormat, weights_only: bool) -> None:
        check_choice("file_format", file_format, FileFormat)
        if file_format == "safetensors":
            import safetensors.torch  # noqa: F401  # raise for a missing package before training starts
        self.file_format, self.weights_only = file_format, weights_only

    def save(self, state: object, path: Path, *, flush: bool) -> str:
        """Write a state to a file, verify that it loads, and return the hash of the file.

        Raises:
            StateError: If it would not load; no file remains.
            OSError: If the file cannot be written.
        """
        try:
            leaves = list(_leaves(state))
        except RecursionError:
            raise StateError(
                "state must not contain itself or be nested deeper than Python's recursion limit."
            ) from None
        for place, value in leaves:
            if type(value).__name__ in SHARDED:
                gather = "pass update a function that gathers it (get_model_state_dict with full_state_dict=True)"
                raise StateError(f"{place} must be a whole tensor, but is a {type(value).__name__}: {gather}.")
            if isinstance(value, Tensor) and value.is_meta:
                raise StateError(f"{place} must have values, but is on the meta device, which has none.")
        try:
            sha256 = write_whole(path, lambda file: self._dump(state, Sink(file)), flush=flush)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # pickle and torch raise many kinds
            raise StateError(f"{_blame(leaves, self._dump)} cannot be saved: {shown(str(error))}") from error
        if self._is_loadable(path):
            return sha256
        unsafe = "its structure"
        with suppress(Exception):  # torch may fail to read its own file
            unsafe = ", ".join(sorted(get_unsafe_globals_in_checkpoint(path))) or unsafe
        path.unlink()
        remedy = "convert it to tensors, numbers, text, lists and dictionaries"
        remedy += ", or create the selector with weights_only=False" if self.weights_only else ""
        how = " with weights_only=True" if self.weights_only else ""
        problem = f"{_blame(leaves, self._check)} cannot be loaded again{how}, because of {shown(unsafe)}"
        raise StateError(f"{problem}: {remedy}.")

    def load(self, path: Path, map_location: Any) -> Any:
        """Load a state."""
        if path.suffix == ".pt":
            return torch.load(path, map_location=map_location, weights_only=self.weights_only)
        from safetensors.torch import load_file

        return {name: tensor.to(map_location) for name, tensor in load_file(path).items()}

    def _dump(self, state: object, file: Any) -> None:
        if self.file_format == "pt":
            torch.save(state, file)
            return
        from safetensors.torch import save

        if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
            raise TypeError("safetensors accepts only dictionaries of tensors")
        file.write(save({name: tensor.resolve_conj().resolve_neg() for name, tensor in state.items()}))

    def _is_loadable(self, file: Path) -> bool:
        """Return whether a file loads, first on the meta device, which reads no values."""
        if self.file_format == "pt":
            return any(self._loads(file, device) for device in ("meta", "cpu"))  # meta lacks some kinds of tensors
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, "pt"):
                return True
        except SafetensorError:
            return False

    def _loads(self, file: Path | BytesIO, device: str) -> bool:
        try:
            torch.load(file, map_location=device, weights_only=self.weights_only)
        except Exception:  # torch raises many kinds
            return False
        return True

    def _check(self, value: object, file: BytesIO) -> None:
        torch.save(value, file)
        file.seek(0)
        if not self._loads(file, "cpu"):
            raise TypeError


class Sink:
    """A file that ignores writes after it is closed: torch writes once more after an interrupt."""

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
    """Yield the path and value of each leaf of nested containers."""
    if type(state) not in CONTAINERS:
        yield path, state
        return
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        yield from _leaves(value, f"{path}[{key!r}]")


def _blame(leaves: list[tuple[str, Any]], fails: Callable[[object, Any], None]) -> str:
    """Return the path and type of the first leaf for which a function raises."""
    for path, value in leaves:
        try:
            fails({"": value} if isinstance(value, Tensor) else value, BytesIO())
        except Exception:
            return f"{path}, a {type(value).__module__}.{type(value).__qualname__},"
    return "state"
