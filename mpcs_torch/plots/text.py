"""Texts of the user in figures."""

from textwrap import wrap

MOST = 40
"""The most characters of a name: about as many as fit the width of a figure in a legend."""
MOST_IN_SENTENCE = 22
"""The same where a value follows the name in the legend."""
LINE = 46
"""The most characters in a line of a title."""


def literal(name: str, most: int = MOST) -> str:
    """Cut a name in its middle, and escape it: $ would start a formula, and a leading _ would hide it from the legend.

    Long names of runs and files often begin alike, so that their ends must stay.
    """
    kept = name if len(name) <= most else f"{name[: (most - 1) // 2]}…{name[-(most // 2) :]}"
    shown = kept.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def lines(text: str, width: int = LINE) -> str:
    """Break a title that is wider than a figure; cut it after two lines."""
    return "\n".join(wrap(literal(text, 2 * width - 8), width))
