"""The layout as a test: which part may import which, what an import costs, and how long a file may grow."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "mpcs_torch"

MAY_IMPORT = {
    "tables": set(),
    "concern": set(),
    "functional": set(),
    "metrics": {"concern", "functional"},
    "plots": {"functional"},
    "scoring": {"concern", "functional", "metrics", "tables"},
    "learning": {"concern", "functional", "tables"},
    "trainer": {"concern", "functional", "metrics", "learning", "tables"},
    "paper": {"concern", "functional", "metrics", "learning", "tables", "trainer"},
    "report": {"concern", "functional", "metrics", "learning", "plots", "scoring", "tables", "trainer", "paper"},
    "cli": {"concern", "functional", "metrics", "learning", "plots", "scoring", "tables", "trainer", "paper", "report"},
}
"""Part by part, without itself."""

FILES = sorted(PACKAGE.rglob("*.py"))


def our_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.split(".")[0] == "mpcs_torch")


def test_every_folder_has_its_arrows() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert folders | files == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    for name in our_imports(path):
        imported = name.split(".")[1] if "." in name else "the top level"
        assert imported == part or imported in MAY_IMPORT[part], f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_stay_small_and_named_after_what_they_hold(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 220
    assert path.stem not in {"utils", "helpers", "common", "misc"}


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_importing_the_package_loads_nothing_of_the_trainer() -> None:
    extra = loaded_by("import mpcs_torch") - loaded_by("import torchmetrics")
    heavy = {"torchvision", "sklearn", "lightning_fabric", "matplotlib", "pydantic", "typer", "yaml", "rich", "jinja2"}
    assert not extra & heavy
