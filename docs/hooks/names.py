"""Markdown extension: names of the package in backticks become links to the reference."""

import re
from functools import cache
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from public_names import PACKAGES, public_names

NOT_INSIDE = {"a", "autoref", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}


@cache
def targets() -> dict[str, str]:
    """Return the path in the reference of each text in backticks that names something."""
    paths = [
        (name, f"mpcs_torch.{package}.{name}")
        for package in PACKAGES
        for name in public_names(package)
    ]
    classes = {name: path for name, path in reversed(paths) if name[0].isupper()}
    dotted = {path: path for _, path in paths}
    return classes | dotted | {path.removeprefix("mpcs_torch."): path for path in dotted}


class NamesExtension(Extension):
    """Link names in text; code blocks and headings stay as they are."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # the name that Markdown calls
        """Link after backticks have become code elements."""
        md.treeprocessors.register(_Links(md), "names", 1)


class _Links(Treeprocessor):
    def run(self, root: Element) -> None:
        if root.tag in NOT_INSIDE:
            return
        for place, child in enumerate(list(root)):
            path = (
                targets().get(re.sub(r"\(.*", "", child.text or ""))
                if child.tag == "code"
                else None
            )
            if path is None:
                self.run(child)
                continue
            link = Element("autoref", {"identifier": path, "optional": ""})
            link.tail, child.tail = child.tail, None
            child.text = AtomicString(child.text)
            link.append(child)
            root[place] = link
