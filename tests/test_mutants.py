"""The tool that changes the core, on a function of its own; what it finds is what `make mutants` prints."""

import ast
from pathlib import Path

from tests.mutants import code_of, places, replace

SOURCE = """
class Meter:
    @property
    def level(self, low: int | None = 0):
        "A text with a 1."
        check(low)
        if low < self.x and not self.full:
            raise ValueError(f"{low + 1}")
        return min(self.x - 2, key=True) + sum(zip(self.x, strict=True))
"""
CHANGES = {
    ("check(low)", "None"),
    ("low < self.x", "low <= self.x"),
    ("low < self.x and (not self.full)", "low < self.x or not self.full"),
    ("not self.full", "not not self.full"),
    ("if low < self.x and (not self.full):", "if not (low < self.x and (not self.full)):"),
    (
        "min(self.x - 2, key=True) + sum(zip(self.x, strict=True))",
        "min(self.x - 2, key=True) - sum(zip(self.x, strict=True))",
    ),
    ("min(self.x - 2, key=True)", "min(self.x - 2)"),
    ("min", "max"),
    ("self.x - 2", "self.x + 2"),
    ("2", "3"),
    ("True", "False"),
    ("sum", "mean"),
}


def test_operators_numbers_and_statements_are_changed_but_no_texts_types_and_errors() -> (
    None
):
    found = set()
    for number in range(len(list(places(ast.parse(SOURCE))))):
        tree = ast.parse(SOURCE)
        function, node, change = list(places(tree))[number]
        old = ast.unparse(node).split("\n")[0]
        before = code_of(tree, function, Path("x.py"))
        vars(node).update(change)
        assert code_of(tree, function, Path("x.py")) != before
        found.add((old, ast.unparse(node).split("\n")[0]))
    assert found == CHANGES


def doubled(value: int) -> int:
    return 2 * value


def test_a_function_takes_the_code_of_its_mutant_wherever_it_is_held() -> None:
    held, before = doubled, doubled.__code__
    path = Path(before.co_filename)
    tree = ast.parse(path.read_text())
    function, node, change = next(
        place for place in places(tree) if place[0].name == "doubled"
    )
    vars(node).update(change)  # 2 * value becomes 2 / value
    try:
        replace(code_of(tree, function, path))
        assert held(4) == 0.5
    finally:
        doubled.__code__ = before
    assert held(4) == 8
