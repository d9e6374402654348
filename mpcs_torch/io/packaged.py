"""Look up this package's YAML files in ``configs/`` by name, and import user objects by path."""

import importlib
import os
import re
import sys
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mpcs_torch.errors import InvalidValueError, did_you_mean, shown


def packaged_folder(kind: str) -> Path:
    """Return the folder ``configs/KIND``, such as ``configs/concerns``, of the installed package or the repository."""
    package = Path(__file__).parents[1]
    configs = package / "configs"
    if not configs.is_dir():  # in the repository, they are beside the package
        configs = package.parent / "configs"
    return configs / kind


def packaged_names(kind: str) -> list[str]:
    """Return the sorted names, without ``.yaml``, of the files in the folder ``configs/KIND``."""
    return sorted(path.stem for path in packaged_folder(kind).glob("*.yaml"))


def packaged_file(kind: str, name: str) -> Path:
    """Return the path of ``configs/KIND/NAME.yaml`` in this package; the file need not exist."""
    return packaged_folder(kind) / f"{name}.yaml"


def is_packaged_name(text: str) -> bool:
    """Return whether ``text`` is the name of a packaged file, not a path, which has a dot or a slash."""
    return "." not in text and Path(text).name == text


def known_names(kind: str, name: str) -> str:
    """Return a sentence on the packaged files of ``kind``: those that are spelled like ``name``, or all."""
    names = packaged_names(kind)
    return did_you_mean(name, names) or f"the names are {', '.join(names)}."


PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""A pattern for an import path, such as ``package.module:attribute``."""


def import_attribute(path: object) -> Any:
    """Return the object at ``path``, written ``package.module:attribute``. This runs the module's code.

    Installed packages come first. The current folder is searched only for a package that is found nowhere else.

    Raise a ValueError if the import fails, or if the object is in the standard library. The second rule prevents
    mistakes, but does not stop malicious configs.
    """
    if not isinstance(path, str) or not PATH.fullmatch(path):
        raise InvalidValueError("import_path", "path", path)
    module, _, attribute = path.partition(":")
    package = module.partition(".")[0]
    try:
        _search_current_folder(package)
        attribute_value = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # the module's code may raise anything
        problem = type(error).__name__
        if str(error):
            problem += f": {error}"
        remark = _installed_instead(package)
        raise InvalidValueError(
            "import_fails", "path", path, problem=shown(problem), remark=remark
        ) from error
    origin = attribute_value
    if isinstance(origin, partial):
        origin = origin.func
    # Numbers, for example, have no module.
    of_origin = getattr(origin, "__module__", None) or module
    owner = str(of_origin).partition(".")[0]
    if owner in sys.stdlib_module_names:
        raise InvalidValueError("standard_library", "path", path, owner=owner)
    return attribute_value


def _search_current_folder(package: str) -> None:
    """Add the current folder to the end of the search path if ``package`` is there, and is found nowhere else.

    Otherwise the folder stays off the path, so that no other import finds a file in it, such as ``./pyarrow.py``.
    """
    is_elsewhere = package in sys.modules or find_spec(package) is not None
    if not is_elsewhere and _spec_here(package) is not None:
        sys.path.append(os.getcwd())


def _installed_instead(package: str) -> str:
    """Return a remark if another ``package`` was imported than that in the current folder; else an empty text."""
    imported = getattr(sys.modules.get(package), "__file__", None)
    here = _spec_here(package)
    if here is None or imported in (None, here.origin):
        return ""
    return f"; {package} is {imported}, which comes before that in the current folder: rename yours"


def _spec_here(package: str) -> ModuleSpec | None:
    return PathFinder.find_spec(package, [os.getcwd()])
