"""Things that configs and commands name: the files of ``configs/``, and objects of the user's own by import path."""

import importlib
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from mpcs_torch.errors import quoted, shown


def packaged_folder(kind: str) -> Path:
    """Return a folder under ``configs/``, of the installed package or of the repository: experiments, concerns, ..."""
    package = Path(__file__).parents[1]
    root = package / "configs" if (package / "configs").is_dir() else package.parent / "configs"
    return root / kind


def packaged_names(kind: str) -> list[str]:
    """Return the names of the files in such a folder."""
    return sorted(path.stem for path in packaged_folder(kind).glob("*.yaml"))


def packaged_file(kind: str, name: str) -> Path:
    """Return the file of a name."""
    return packaged_folder(kind) / f"{name}.yaml"


PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def import_attribute(path: object) -> Any:
    """Import the attribute that ``package.module:attribute`` names. This runs the module's code.

    Attributes of Python's standard library are refused: it has no parts of a run, but functions that delete and execute
    what they are given. This is a guard against mistakes, not against code that somebody wants you to run.

    Raises:
        ValueError: If there is no such module or attribute, the module fails, or it is of the standard library.
    """
    if not isinstance(path, str) or not PATH.fullmatch(path):
        raise ValueError(f"path must read package.module:attribute, but is {quoted(path)}")
    module, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ValueError(
            f"path must read package.module:attribute, but {quoted(path)} gives: {shown(problem)}"
        ) from error
    maker = found.func if isinstance(found, partial) else found
    home = str(getattr(maker, "__module__", None) or module).partition(".")[0]
    if home in sys.stdlib_module_names:
        raise ValueError(f"path must not name a part of Python's standard library, but {quoted(path)} is of {home}")
    return found
