"""Print the words of each page that people wrote.

Usage: ``python -m tests.docs.words``. A word contains a letter. Prose is text outside tables and blocks of code, with
headings and lists; the target of a link and what a page includes are not counted. Pages that programs write are left
out; pages of the reference count with what stands in their files, not with the docstrings that the site adds.
"""

import re
from pathlib import Path

from tests.docs.pages import PAGES, name_of

WRITTEN_BY_PROGRAMS = {"docs/results/benchmark/results.md", "docs/results/benchmarks.md"}
NO_WORDS = [
    re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE),
    re.compile(
        r"<!-- mpcs metrics -->.*?<!-- end -->", re.DOTALL
    ),  # what `mpcs metrics` prints
    re.compile(r"<!--.*?-->|</?[a-z][^<>]*>", re.DOTALL),
    re.compile(r"^(:::|--8<--).*\n(    .*\n)*", re.MULTILINE),
    re.compile(r"(?<=\])\([^)]*\)"),
]


def words(text: str) -> int:
    """Return how many words of ``text`` contain a letter."""
    return sum(re.search("[A-Za-z]", word) is not None for word in text.split())


def words_of(page: Path) -> tuple[int, int]:
    """Return the words of the prose of a page, and those of its tables."""
    text = page.read_text(encoding="utf-8")
    for pattern in NO_WORDS:
        text = pattern.sub("", text)
    lines = text.splitlines()
    tables = "\n".join(line for line in lines if line.startswith("|"))
    return words(text) - words(tables), words(tables)


def main() -> None:
    """Print the words of each page, and of all."""
    print(f"{'prose':>7}{'tables':>8}")
    all_prose = all_tables = 0
    for page in PAGES:
        if name_of(page) in WRITTEN_BY_PROGRAMS:
            continue
        prose, tables = words_of(page)
        print(f"{prose:7}{tables:8}  {name_of(page)}")
        all_prose += prose
        all_tables += tables
    print(f"{all_prose:7}{all_tables:8}  all")


if __name__ == "__main__":
    main()
