"""Files of decision rules, which load with ``weights_only=True``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MpcsError
from mpcs_torch.files import replace_whole

KIND = "mpcs_torch decision rule"
"""Names the kind of the file in its field ``kind``."""


class DecisionFileError(MpcsError, ValueError):
    """A file that does not hold a decision rule."""


def save(
    path: Path,
    concern: ConcernSpec,
    settings: Mapping[str, Any],
    state: Mapping[str, Any],
    report: Mapping[str, Any] | None,
    *,
    overwrite: bool,
) -> None:
    """Write a rule as tensors and plain values, in one step; refuse to overwrite a file unless asked to."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists: choose another file or pass overwrite=True")
    held = {
        "kind": KIND,
        "concern": concern_as_plain(concern),
        "settings": dict(settings),
        "state": dict(state),
        "report": None if report is None else dict(report),
    }
    replace_whole(path, lambda file: torch.save(held, file))


def load(path: Path) -> dict[str, Any]:
    """Read what `save` wrote."""
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # zip and pickle raise many kinds
        raise DecisionFileError(f"{path}: is not a file of a decision rule, and cannot be read") from error
    if not isinstance(held, dict) or held.get("kind") != KIND:
        raise DecisionFileError(f"{path}: is not a file of a decision rule")
    return held


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error in the content of a file into a `DecisionFileError` that names it."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DecisionFileError(f"{path}: the decision rule is damaged: {' '.join(str(error).split())}") from error
