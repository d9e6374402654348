"""Objects of the user's own, named in configs and commands by import path."""

import importlib
import re
import sys
from functools import partial
from typing import Any

from mpcs_torch.errors import quoted, shown

PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def check_import_path(path: object) -> str:
    """Return an import path that has the form ``package.module:attribute``, without importing anything.

    Raises:
        ValueError: If it does not.
    """
    if not isinstance(path, str) or not PATH.fullmatch(path):
        raise ValueError(f"path must read package.module:attribute, but is {quoted(path)}")
    return path


def import_attribute(path: str) -> Any:
    """Import the attribute that ``package.module:attribute`` names. This runs the module's code.

    Attributes of Python's standard library are refused: it has no parts of a run, but functions that delete and execute
    what they are given. This is a guard against mistakes, not against code that somebody wants you to run.

    Raises:
        ValueError: If there is no such module or attribute, the module fails, or it is of the standard library.
    """
    module, _, attribute = check_import_path(path).partition(":")
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
