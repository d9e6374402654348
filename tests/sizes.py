"""Print the size of each folder of Python files, counted in nodes of the syntax tree.

Usage: ``python -m tests.sizes [FOLDER ...]``; by default, the package, tests, benchmarks and examples.

A line can be made dense, a node cannot: three plain lines and one clever line have about as many nodes. So nodes show
how much there is to understand, and nodes for each line of code show how dense the lines are.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Size:
    """The size of some files."""

    files: int = 0
    nodes: int = 0
    """Nodes of the syntax tree, without docstrings."""
    definitions: int = 0
    """Functions, methods and classes."""
    comments: int = 0
    lines: int = 0
    """Lines of code: neither blank nor part of a docstring."""

    def __add__(self, other: "Size") -> "Size":
        return Size(
            self.files + other.files,
            self.nodes + other.nodes,
            self.definitions + other.definitions,
            self.comments + other.comments,
            self.lines + other.lines,
        )

    @property
    def density(self) -> float:
        """The nodes for each line of code."""
        return self.nodes / self.lines if self.lines else 0.0


def size(text: str) -> Size:
    """Return the size of a file with the content ``text``."""
    tree = ast.parse(text)
    docstring_lines = 0
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            docstrings = [statement for statement in body if _is_docstring(statement)]
            docstring_lines += sum(each.end_lineno - each.lineno + 1 for each in docstrings)
            node.body = [statement for statement in body if statement not in docstrings]
    nodes = list(ast.walk(tree))
    definitions = [
        node
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = sum(token.type == tokenize.COMMENT for token in tokens)
    filled_lines = sum(bool(line.strip()) for line in text.splitlines())
    return Size(1, len(nodes), len(definitions), comments, filled_lines - docstring_lines)


def _is_docstring(statement: ast.stmt) -> bool:
    """Return whether ``statement`` is only a string: a docstring, or the description of an attribute."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def total(paths: Iterable[Path]) -> Size:
    """Return the size of the files ``paths`` together."""
    return sum((size(path.read_text(encoding="utf-8")) for path in paths), Size())


def sizes(folder: Path) -> Iterator[tuple[str, Size]]:
    """Yield the name and size of each folder in ``folder``, then of the files beside them, then of everything."""
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = list(inner.rglob("*.py"))
        if files:
            yield f"{folder.name}/{inner.name}", total(files)
    yield f"{folder.name}/*.py", total(folder.glob("*.py"))
    yield folder.name, total(folder.rglob("*.py"))


def main(folders: list[str]) -> None:
    """Print a table of the sizes of ``folders``."""
    print(
        f"{'folder':32}{'files':>7}{'nodes':>9}{'definitions':>13}{'comments':>10}{'lines':>8}{'nodes/line':>12}"
    )
    for folder in folders or ["mpcs_torch", "tests", "benchmarks", "examples"]:
        for name, one in sizes((ROOT / folder).resolve()):
            counts = f"{one.files:7}{one.nodes:9}{one.definitions:13}{one.comments:10}{one.lines:8}"
            print(f"{name:32}{counts}{one.density:12.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
