"""Public names that a package imports on their first use, so that importing the package is fast."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a ``package``; ``names`` are the public ones by module."""
    modules = {name: module for module, public in names.items() for name in public}

    def import_name(name: str) -> Any:
        if name in modules:
            value = getattr(import_module(f"{package}.{modules[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in names:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def all_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *names})

    return import_name, all_names, sorted(modules)
