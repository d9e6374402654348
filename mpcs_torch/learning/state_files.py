"""Files of states that can be loaded again: what could not is refused when it is saved, by name."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
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
    """A state cannot be saved so that it could be loaded again."""


FileFormat = Literal["pt", "safetensors"]
CONTAINERS = (dict, OrderedDict, list, tuple)
SHARDED = ("DTensor", "ShardedTensor")


class StateFiles:
    """Saves and loads states in one format."""

    def __init__(self, file_format: FileFormat, weights_only: bool) -> None:
        check_choice("file_format", file_format, FileFormat)
        if file_format == "safetensors":
            import safetensors.torch  # noqa: F401  # a missing package is told before the training
        self.file_format, self.weights_only = file_format, weights_only

    def save(self, state: object, path: Path, *, flush: bool) -> str:
        """Write a state to a file from which it can be loaded; return the hash of the file.

        Raises:
            StateError: If it could not be loaded; no file remains.
            OSError: If the file cannot be written.
        """
        for place, value in _leaves(state):
            if type(value).__name__ in SHARDED:
                gather = "give update a function that gathers it (get_model_state_dict with full_state_dict=True)"
                raise StateError(f"{place} must be a whole tensor, but is a {type(value).__name__}: {gather}.")
        try:
            sha256 = write_whole(path, lambda file: self._dump(state, file), flush=flush)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # pickle and torch raise many kinds
            raise StateError(f"{_blame(state, self._dump)} cannot be saved: {shown(str(error))}") from error
        if self.file_format == "pt" and self.weights_only and not _is_loadable(path):
            unsafe = ", ".join(sorted(get_unsafe_globals_in_checkpoint(path))) or "its structure"
            path.unlink()
            raise StateError(
                f"{_blame(state, _check)} cannot be loaded with weights_only=True, because of {shown(unsafe)}: convert "
                "it to tensors, numbers, text, lists and dictionaries, or create the selector with weights_only=False."
            )
        return sha256

    def load(self, path: Path, map_location: Any) -> Any:
        """Load a state."""
        if path.suffix == ".pt":
            return torch.load(path, map_location=map_location, weights_only=self.weights_only)
        from safetensors.torch import load_file

        return {name: tensor.to(map_location) for name, tensor in load_file(path).items()}

    def _dump(self, state: object, file: BinaryIO) -> None:
        if self.file_format == "pt":
            torch.save(state, file)
            return
        from safetensors.torch import save

        if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
            raise TypeError("safetensors takes a dictionary of tensors alone")
        file.write(save(state))


def _leaves(state: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Give each value within containers, and its path."""
    if type(state) not in CONTAINERS:
        yield path, state
        return
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        yield from _leaves(value, f"{path}[{key!r}]")


def _is_loadable(file: Path | BytesIO) -> bool:
    """Return whether a checkpoint loads with ``weights_only=True``; the tensors themselves are not read at first."""
    for device in ("meta", "cpu"):  # some kinds of tensors are none on "meta"
        try:
            if isinstance(file, BytesIO):
                file.seek(0)
            torch.load(file, map_location=device, weights_only=True)
            return True
        except Exception:  # torch raises many kinds
            continue
    return False


def _check(value: object, file: BinaryIO) -> None:
    torch.save(value, file)
    if not _is_loadable(file):  # type: ignore[arg-type]  # a BytesIO
        raise TypeError


def _blame(state: object, fails: Callable[[object, BinaryIO], None]) -> str:
    """Return the path and the type of the first entry of a state for which a function fails."""
    for path, value in _leaves(state):
        try:
            fails({"": value} if isinstance(value, Tensor) else value, BytesIO())
        except Exception:
            return f"{path}, a {type(value).__module__}.{type(value).__qualname__},"
    return "state"
