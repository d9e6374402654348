"""Print the lowest versions that pyproject.toml allows of what users install, as constraints for pip."""

import re
import tomllib
from pathlib import Path

FOR_USERS = ("plot", "cli", "train", "hdf5")
"""The extras that users install; developers may be asked for newer versions."""


def lowest_versions(pyproject: str) -> list[str]:
    """Return a line ``name==version`` for each requirement ``name>=version``."""
    project = tomllib.loads(pyproject)["project"]
    requirements = [*project["dependencies"]]
    for extra in FOR_USERS:
        requirements += project["optional-dependencies"][extra]
    bounds = (
        re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement) for requirement in requirements
    )
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


if __name__ == "__main__":
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    print("\n".join(lowest_versions(pyproject.read_text())))
