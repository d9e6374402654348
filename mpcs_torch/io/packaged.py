"""Look up this package's YAML files in ``configs/`` by name, and import user objects by path."""

import importlib
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from mpcs_torch.errors import quoted, shown


def packaged_folder(kind: str) -> Path:
    """Return the folder ``configs/KIND``, such as ``configs/concerns``, of the installed package or the repository."""
    package = Path(__file__).parents[1]
    root = package / "configs" if (package / "configs").is_dir() else package.parent / "configs"
    return root / kind


def packaged_names(kind: str) -> list[str]:
    """Return the sorted names, without ``.yaml``, of the files in the folder ``configs/KIND``."""
    return sorted(path.stem for path in packaged_folder(kind).glob("*.yaml"))


def packaged_file(kind: str, name: str) -> Path:
    """Return the path of ``configs/KIND/NAME.yaml`` in this package; the file need not exist."""
    return packaged_folder(kind) / f"{name}.yaml"


PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def import_attribute(path: object) -> Any:
    """Return the object at ``path``, written ``package.module:attribute``. This runs the module's code.

    Raise a ValueError if the import fails, or if the object is in the standard library. The second rule prevents
    mistakes, but does not stop malicious configs.
    """
    if not isinstance(path, str) or not PATH.fullmatch(path):
        raise ValueError(f"path must read package.module:attribute, but is {quoted(path)}")
    module, _, attribute = path.partition(":")
    try:
        attribute_value = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ValueError(
            f"path must read package.module:attribute, but {quoted(path)} gives: {shown(problem)}"
        ) from error
    origin = attribute_value.func if isinstance(attribute_value, partial) else attribute_value
    package = str(getattr(origin, "__module__", None) or module).partition(".")[0]
    if package in sys.stdlib_module_names:
        raise ValueError(f"path must not name a part of Python's standard library, but {quoted(path)} is in {package}")
    return attribute_value
