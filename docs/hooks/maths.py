"""Markdown extension: the maths of docstrings, as ``.. math::`` blocks and ``:math:`...```, becomes MathML.

The conversion happens when the site is built, so that pages need no script and no font from elsewhere.
"""

import re
import textwrap
from collections.abc import Iterator

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

DIRECTIVE = re.compile(r"^( *)\.\. math::(.*)$")
FENCE = re.compile(r"^ *(```|~~~)")
INLINE = r":math:`([^`]+)`"


class MathsExtension(Extension):
    """Convert both forms, outside code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # the name that Markdown calls
        """Convert blocks before fenced code is read, and inline maths before code in backticks."""
        md.preprocessors.register(_Blocks(md), "maths_blocks", 24)
        md.inlinePatterns.register(_Inline(INLINE, md), "maths_inline", 200)


class _Blocks(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return list(self._converted(lines))

    def _converted(self, lines: list[str]) -> Iterator[str]:
        rest = iter(enumerate(lines))
        in_code = False
        for number, line in rest:
            in_code ^= FENCE.match(line) is not None
            found = DIRECTIVE.match(line)
            if in_code or found is None:
                yield line
                continue
            indent, formula = found[1], [found[2]]
            for following in lines[number + 1 :]:
                if following.strip() and not following.startswith(indent + "    "):
                    break
                formula.append(following)
                next(rest)
            html = f'<div class="maths" markdown="0">{block(" ".join(formula))}</div>'
            yield from ("", indent + self.md.htmlStash.store(html), "")


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]  # noqa: ARG002, N802
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


def block(formula: str) -> str:
    """Return the MathML of a formula that stands alone; wide space ends a line, as pages can be narrow."""
    parts = re.split(r"\\q?quad", textwrap.dedent(formula))
    return "".join(
        f"<div>{convert(part.strip().rstrip(','), display='block')}</div>"
        for part in parts
        if part.strip()
    )
