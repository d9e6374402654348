"""The base class of the errors that a user can fix, and how messages quote a value and escape control characters."""

import re
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches

MAX_QUOTED = 100
"""Characters of a value in a message: enough to find it in a file."""


class MpcsError(Exception):
    """An error in what the user gave: a file, a config, a data set. The ``mpcs`` command prints its message alone.

    Errors derive from it beside a built-in error, so that code that knows nothing of this package catches them too.
    """

    exit_status = 2
    """Of the command."""
    is_printed_elsewhere = False
    """Whether another process of the same run prints the message."""


class DataError(MpcsError, RuntimeError):
    """A data set is missing, broken, or cannot be split as asked."""


def require(is_kept: object, rule: str, value: object) -> None:
    """Raise a ValueError that says which rule a value breaks, unless it is kept."""
    if not is_kept:
        raise ValueError(f"{rule}, but got {value}.")


class _Short(reprlib.Repr):
    """`repr` that stops early: a hostile value may be huge or deeply nested."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxlong = self.maxother = MAX_QUOTED

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() < 1000 else f"an integer of {x.bit_length()} bits"


def quoted(value: object) -> str:
    r"""Return a value as Python would write it, cut to about 100 characters and without control characters.

    Example:
        >>> quoted(["red", chr(27)])
        "['red', '\\x1b']"
    """
    text = _Short().repr(value)
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 3]}..."


def did_you_mean(given: object, names: Iterable[str]) -> str:
    """Return a question after names that are spelled almost the same; empty if there is none.

    Example:
        >>> did_you_mean("acuracy", ["accuracy", "mpcs"])
        'did you mean accuracy?'
    """
    near = get_close_matches(str(given)[:MAX_QUOTED], list(names))
    return f"did you mean {' or '.join(near)}?" if near else ""


def shown(text: str, limit: int = MAX_QUOTED) -> str:
    """Return a name or message for use within another one: on one line, cut and without control characters."""
    line = " ".join(text[: 2 * limit].split())
    safe = line if line.isprintable() else repr(line)[1:-1]
    return safe if len(safe) <= limit and len(text) <= 2 * limit else f"{safe[: limit - 3]}..."


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""Control characters, line separators, changes of direction, byte order marks and half characters; joiners, which many
scripts need, are none."""


def has_control(text: str) -> bool:
    """Return whether a text has a control character."""
    return CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, such as ``\x1b`` for the start of a terminal command."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
