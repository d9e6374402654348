"""Each rule has one place: the page of rules names it, and no other place repeats its number."""

import ast
import re
from collections.abc import Iterator

import pytest

from mpcs_torch.evaluation.detectors import MISSES, POINTS
from mpcs_torch.functional.concern.mpcs import DEFAULT_K, DEFAULT_T
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT, LEVEL
from mpcs_torch.functional.inputs.sum_tolerance import SUM_TOLERANCE
from tests.docs.pages import ROOT

PACKAGE = ROOT / "mpcs_torch"
ROW = re.compile(
    r"^\| (?P<rule>[^|`]+) \| `(?P<file>[^`]+)` \| (?P<names>`[^|]+`) \|$", re.MULTILINE
)
PLACES = [
    (row["file"], name.strip(" `"))
    for row in ROW.finditer(
        (ROOT / "docs/development/rules.md").read_text(encoding="utf-8")
    )
    for name in row["names"].split(",")
]
DECIDED_IN = {"functional/inputs/confidence.py", "functional/inputs/sum_tolerance.py"}
SOURCES = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in PACKAGE.rglob("*.py")
    if str(path.relative_to(PACKAGE)) not in DECIDED_IN
}
SHOWN_BY_COMMANDS = {
    "confidence": f"{CONFIDENCE:g}",
    "k": str(DEFAULT_K),
    "t": str(DEFAULT_T),
    "at_miss": " and ".join(f"{miss:g}" for miss in MISSES),
}
"""The defaults that help texts repeat, because commands print them without loading torch."""


def names_in(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    """Yield the functions, classes, methods and constants that a module defines."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield within + node.name
        if isinstance(node, ast.ClassDef):
            yield from names_in(node.body, f"{node.name}.")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                within + name.id
                for each in targets
                for name in ast.walk(each)
                if isinstance(name, ast.Name)
            )


def named_numbers(source: str) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers of assignments, defaults and arguments of a module."""
    pairs = list[tuple[str, ast.expr | None]]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            pairs += [(ast.unparse(target), node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs.append((ast.unparse(node.target), node.value))
        elif isinstance(node, ast.keyword):
            pairs.append((node.arg or "", node.value))
        elif isinstance(node, ast.arguments):
            # Only the last ones of the positional arguments have defaults.
            positional = [*node.posonlyargs, *node.args]
            with_default = positional[len(positional) - len(node.defaults) :]
            names = [argument.arg for argument in [*with_default, *node.kwonlyargs]]
            pairs += zip(names, [*node.defaults, *node.kw_defaults], strict=True)
    for name, value in pairs:
        for number in ast.walk(value) if value is not None else ():
            if isinstance(number, ast.Constant) and isinstance(number.value, float):
                yield name, number.value


def repeated(source: str) -> list[str]:
    """Return the names of a module that repeat the number of a rule."""
    rules = {CONFIDENCE, 100 * CONFIDENCE, LEVEL, SUM_TOLERANCE, 1e-3}
    is_of_rule = re.compile("confidence|level|tolerance", re.IGNORECASE)
    return [
        name
        for name, number in named_numbers(source)
        if is_of_rule.search(name) and number in rules
    ]


def texts(source: str) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def test_the_page_has_about_forty_rules() -> None:
    page = (ROOT / "docs/development/rules.md").read_text(encoding="utf-8")
    rows = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith("| rule ")
    ]
    assert len(rows) == len(ROW.findall(page)) >= 40  # every row is read


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_each_rule_is_where_the_page_says(file: str, name: str) -> None:
    assert name in set(
        names_in(ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body)
    )


def test_the_search_for_names_misses_those_that_are_gone() -> None:
    source = (
        "A, B = 1, 2\nC: int = 3\ndef f():\n    D = 4\nclass E:\n    def g(self): ...\n"
    )
    assert {*names_in(ast.parse(source).body)} == {"A", "B", "C", "f", "E", "E.g"}


def test_no_setting_repeats_the_number_of_a_rule() -> None:
    names = {file: repeated(source) for file, source in SOURCES.items()}
    assert [file for file in names if names[file]] == []


@pytest.mark.parametrize(
    "source",
    [
        "CONFIDENCE = 0.95",
        "my_level: float = 0.05",
        "def f(a, level=0.05): ...",
        "def f(*, confidence: float | None = 0.95): ...",
        "f(confidence=0.95)",
        "confidence = given or 0.95",
        "TOLERANCE, OTHER = 1e-3, 2",
    ],
)
def test_a_repeated_number_is_seen(source: str) -> None:
    assert len(repeated(source)) == 1
    assert repeated(re.sub(r"0\.95|0\.05|1e-3", "0.25", source)) == []


def test_no_text_repeats_the_confidence() -> None:
    assert [
        file
        for file, source in SOURCES.items()
        if any(CONFIDENCE_TEXT in text for text in texts(source))
    ] == []
    assert [*texts('"""95 %."""\nA = f"{x}: 95 %"\n')] == [": 95 %"]


def test_help_texts_show_the_defaults_of_the_rules() -> None:
    shown = dict[str, set[str]]()
    for path in (PACKAGE / "cli/verbs").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.arg)
                and node.arg in SHOWN_BY_COMMANDS
                and node.annotation is not None
            ):
                defaults = [
                    each.value
                    for each in ast.walk(node.annotation)
                    if isinstance(each, ast.keyword) and each.arg == "show_default"
                ]
                shown.setdefault(node.arg, set()).update(
                    ast.literal_eval(default) for default in defaults
                )
    assert shown == {name: {default} for name, default in SHOWN_BY_COMMANDS.items()}
    from mpcs_torch.cli.verbs.detect import POINTS as SHOWN_POINTS

    assert tuple(f"{point.p_target:g}" for point in POINTS) == SHOWN_POINTS
