"""The public names of the package, read from its source without importing it."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "mpcs_torch"
PACKAGES = ("concern", "metrics", "functional", "evaluation", "learning", "calibration")


@cache
def public_names(package: str) -> dict[str, str]:
    """Return the public names of a package, each with the module that it comes from."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text())
    imports = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    ]  # or for checkers
    found = {
        alias.asname or alias.name: node.module for node in imports for alias in node.names
    }
    assigned = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    reexported = sorted(
        alias.name for node in imports for alias in node.names if alias.asname == alias.name
    )
    listed = ast.literal_eval(assigned["__all__"]) if "__all__" in assigned else reexported
    return {name: found[name] for name in listed}


def names_in(package: str, family: str | None) -> list[str]:
    """Return the public names of a package, or of the folder of a family in it."""
    start = f"mpcs_torch.{package}.{family or ''}"
    return [
        name
        for name, module in public_names(package).items()
        if f"{module}.".startswith(start)
    ]
