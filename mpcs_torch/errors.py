"""The base class of errors that a user can fix, and functions that quote values and escape control characters."""

import re
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches

MAX_QUOTED = 100
"""The maximum number of characters of a value in a message: enough to find the value in a file."""


class MpcsError(Exception):
    """An error in the user's input: a file, a config or a data set. The ``mpcs`` command prints only its message.

    Each subclass also derives from a built-in error, so that code that does not know this package can catch it.
    """

    exit_status = 2
    """The exit status of the command."""
    is_printed_elsewhere = False
    """Whether another process of the same run prints the message."""


class DataError(MpcsError, RuntimeError):
    """A data set is missing, broken, or cannot be split as asked."""


def require(is_kept: object, rule: str, value: object) -> None:
    """Raise a ValueError that quotes ``rule`` and ``value``, unless ``is_kept`` is true."""
    if not is_kept:
        raise ValueError(f"{rule}, but got {value}.")


class _Short(reprlib.Repr):
    """A `repr` that stops early, because a hostile value may be huge or deeply nested."""

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
    """Return a question that suggests the ``names`` that are spelled almost like ``given``; empty if there are none.

    Example:
        >>> did_you_mean("acuracy", ["accuracy", "mpcs"])
        'did you mean accuracy?'
    """
    near = get_close_matches(str(given)[:MAX_QUOTED], list(names))
    return f"did you mean {' or '.join(near)}?" if near else ""


def shown(text: str, limit: int = MAX_QUOTED) -> str:
    """Return ``text`` on one line, cut to ``limit`` characters and with control characters escaped, for a message."""
    line = " ".join(text[: 2 * limit].split())
    safe = line if line.isprintable() else repr(line)[1:-1]
    return safe if len(safe) <= limit and len(text) <= 2 * limit else f"{safe[: limit - 3]}..."


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""Control characters, line separators, characters that change the direction of text, byte order marks and lone
surrogates. Joiners are not among them, because many scripts need joiners."""


def has_control(text: str) -> bool:
    """Return whether a text has a control character."""
    return CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, such as ``\x1b`` for the start of a terminal command."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
