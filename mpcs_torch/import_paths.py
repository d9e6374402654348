"""Objects of the user's own, named in configs and commands by import path."""

import importlib
from typing import Any


def import_attribute(path: str) -> Any:
    """Import the attribute that ``package.module:attribute`` names. This runs the module's code.

    Raises:
        ValueError: If there is no such module or attribute.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"path must read package.module:attribute, but {path!r} gives: {error}") from None
