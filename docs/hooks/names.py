"""Markdown extension: names of the package in backticks become links to the reference."""

import ast
import re
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

PACKAGE = Path(__file__).parents[2] / "mpcs_torch"
PACKAGES = ("concern", "metrics", "functional", "learning", "calibration")
NOT_INSIDE = {"a", "autoref", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}


@cache
def public_names(package: str) -> dict[str, str]:
    """Return the public names of a package, each with the module that it comes from."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    found = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    listed = next(node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    return {name: found[name] for name in ast.literal_eval(listed.value)}


@cache
def targets() -> dict[str, str]:
    """Return the path in the reference of each text in backticks that names something."""
    paths = [(name, f"mpcs_torch.{package}.{name}") for package in PACKAGES for name in public_names(package)]
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
            path = targets().get(re.sub(r"\(.*", "", child.text or "")) if child.tag == "code" else None
            if path is None:
                self.run(child)
                continue
            link = Element("autoref", {"identifier": path, "optional": ""})
            link.tail, child.tail = child.tail, None
            child.text = AtomicString(child.text)
            link.append(child)
            root[place] = link
