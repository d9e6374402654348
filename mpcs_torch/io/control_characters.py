"""Characters that control how text is shown: a terminal obeys them, and SVG does not allow them."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, line separators, changes of direction and half characters; joiners, which many scripts need, are
none."""


def has_control(text: str) -> bool:
    """Return whether a text has a control character."""
    return CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, such as ``\x1b`` for the start of a terminal command."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
