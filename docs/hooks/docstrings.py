"""Griffe extension: what our docstrings have that griffe's Google style lacks."""

import re
from typing import Any

from griffe import Class, Extension, Object

DOCTEST = re.compile(r"^( *)Example:$", re.MULTILINE)
LITERAL = re.compile(r"(^(?! *\.\. ).*)::$", re.MULTILINE)
REFERENCES = re.compile(r"^( *)References:\n((?:\1    .*\n?)+)", re.MULTILINE)


class DocstringSections(Extension):
    """Read ``Example:`` as a section of doctests, and ``References:`` as a paragraph."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            text = DOCTEST.sub(r"\1Examples:", obj.docstring.value)
            obj.docstring.value = LITERAL.sub(r"\1:", REFERENCES.sub(_as_paragraph, text))

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Leave out what is for those who change the class: the states of metrics, and the methods of configs."""
        for name, member in list(cls.members.items()):
            if cls.path.startswith("mpcs_torch.metrics."):
                hidden = member.is_attribute
            else:
                is_config = cls.path.startswith(
                    "mpcs_torch.trainer."
                ) and cls.name.endswith("Config")
                hidden = is_config and (
                    member.is_function
                    or member.annotation is None
                    or "property" in member.labels
                )
            if hidden:
                cls.del_member(name)


def _as_paragraph(section: re.Match[str]) -> str:
    lines = [line.strip() for line in section[2].splitlines()]
    return f"{section[1]}**References:** {' '.join(lines)}\n"
