"""One statement does one thing: no statement has to be read twice, here as little as in the package."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLAIN = ("mpcs_torch", "benchmarks", "examples", "tests")


def is_nested_conditional(node: ast.AST) -> bool:
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) for part in ast.iter_child_nodes(node)
    )


def unpacks_conditional(node: ast.AST) -> bool:
    """Return whether ``node`` is ``*(a if b else c)``, or ``**(a if b else c)`` in a dictionary."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return any(key is None and isinstance(value, ast.IfExp) for key, value in pairs)
    return isinstance(node, ast.Starred) and isinstance(node.value, ast.IfExp)


def unpacks_generator(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.GeneratorExp)
    )


def assigns_in_comprehension(node: ast.AST) -> bool:
    is_comprehension = isinstance(
        node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    )
    return is_comprehension and any(
        isinstance(part, ast.NamedExpr) for part in ast.walk(node)
    )


DENSE: Mapping[str, Callable[[ast.AST], bool]] = {
    "conditional within a conditional": is_nested_conditional,
    "conditional that is unpacked": unpacks_conditional,
    "generator that is unpacked": unpacks_generator,
    "assignment in a comprehension": assigns_in_comprehension,
}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("conditional within a conditional", "x = 1 if a else 2 if b else 3"),
        ("conditional that is unpacked", "x = [*([1] if a else [])]"),
        ("conditional that is unpacked", "x = {**({} if a else {1: 2})}"),
        ("generator that is unpacked", "a, b = (f(x) for x in pair)"),
        ("assignment in a comprehension", "x = [y for z in a if (y := f(z))]"),
    ],
)
def test_dense_statements_are_found(kind: str, text: str) -> None:
    assert [
        name
        for name, is_dense in DENSE.items()
        if any(map(is_dense, ast.walk(ast.parse(text))))
    ] == [kind]


@pytest.mark.parametrize("folder", PLAIN)
def test_no_statement_is_dense(folder: str) -> None:
    faults = list[str]()
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            kinds = [kind for kind, is_dense in DENSE.items() if is_dense(node)]
            faults += [f"{name}:{getattr(node, 'lineno', 0)}: {kind}" for kind in kinds]
    assert faults == []
