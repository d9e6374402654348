"""Files of decision rules, which load with ``weights_only=True``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MAX_QUOTED, MpcsError, quoted
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.control_characters import printable
from mpcs_torch.io.untrusted_files import FileRuleError, check_whole_tensors, load_tensors

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
    place = printable(str(path))
    try:
        held = load_tensors(path)
    except FileNotFoundError:
        raise
    except FileRuleError as error:
        raise DecisionFileError(f"{place}: {error}") from None
    except Exception as error:  # zip and pickle raise many kinds
        raise DecisionFileError(f"{place}: is not a file of a decision rule, and cannot be read") from error
    if not isinstance(held, dict) or held.get("kind") != KIND:
        raise DecisionFileError(f"{place}: is not a file of a decision rule")
    with reading(path):
        _check_content(held)
    return held


def _check_content(held: Mapping[str, Any]) -> None:
    """Refuse what would take much more memory than the file, or is no part of a rule."""
    classes, state, report = held["concern"]["classes"], held["state"], held["report"]
    check_whole_tensors([*state.values(), *held["settings"].values()])
    if not isinstance(classes, list) or len(state["costs"]) != len(classes):
        raise ValueError("the costs must have a row for each class")
    wrong = [name for name, value in (report or {}).items() if not isinstance(value, int | float)]
    if wrong:
        raise ValueError(f"{quoted(wrong)} of the report must be numbers")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error in the content of a file into a `DecisionFileError` that names it."""
    try:
        yield
    except Exception as error:  # any value may have any type
        problem = f"has no {error}" if isinstance(error, KeyError) else str(error)
        reason = printable(" ".join(problem[: 2 * MAX_QUOTED].split()))
        raise DecisionFileError(f"{printable(str(path))}: the decision rule is damaged: {reason}") from error
