"""The pages for people: README, CONTRIBUTING and docs/, and what stands in their code blocks."""

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROGRAMS = {"mpcs", "python", "torchrun", "make", "pip", "cd", "git", "cp"}
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
"""An example in Python, and what it prints, if anything."""


class Block(NamedTuple):
    """A fenced block of code."""

    language: str
    text: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    return [Block(language, text) for language, _, text in FENCE.findall(page.read_text())]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the commands that a page shows, in its order; settings of the environment are left out."""
    for block in filter(is_of_commands, blocks(page)):
        for line in block.text.replace("\\\n", "").splitlines():
            command = shlex.split(line, comments=True)
            if command:
                yield [*dropwhile(is_setting, command)]


def is_of_commands(block: Block) -> bool:
    first = next((word for word in block.text.split() if not is_setting(word)), "")
    return block.language in ("", "sh", "console") and first in PROGRAMS


def is_setting(word: str) -> bool:
    return re.match(r"[A-Z_]+=", word) is not None
