"""The code uses the names of the glossary, and none of the words that the glossary does not use for a thing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "concepts" / "glossary.md"
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
NAMES = re.compile(r"`(?:--)?(\w+)=?`")


def rows() -> list[list[str]]:
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    table = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


def identifiers() -> Iterator[tuple[str, str]]:
    """Give each name that the package gives to a function, a class, an argument or a variable, and its file."""
    for path in sorted((ROOT / "mpcs_torch").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name, path.name
            elif isinstance(node, ast.arg):
                yield node.arg, path.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, path.name
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr, path.name


def words_of(identifier: str) -> set[str]:
    return {word.lower() for word in WORDS.findall(identifier)}


def test_identifiers_are_parted_into_words() -> None:
    assert words_of("_is_MPCSValue2_of_rows") == {"is", "mpcs", "value", "of", "rows"}


@pytest.fixture(scope="module")
def named() -> list[tuple[str, str]]:
    return list(identifiers())


def test_each_word_stands_once() -> None:
    words = [word.strip() for row in rows() for word in row[0].split(",")]
    assert len(words) == len(set(words)) >= 30


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_identifiers_follow_the_glossary(
    row: list[str], named: list[tuple[str, str]]
) -> None:
    unused = {word for word in re.split(r", ", row[3]) if word}
    assert [pair for pair in named if words_of(pair[0]) & unused] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_names_of_the_glossary_are_in_the_code(
    row: list[str], named: list[tuple[str, str]]
) -> None:
    used = {name for name, _ in named}
    assert set(NAMES.findall(row[2])) <= used
