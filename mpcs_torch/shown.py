"""Show texts of others in messages: short, and without characters that would control the terminal."""

import reprlib
import unicodedata

MOST_CHARACTERS = 100
"""Of a value in a message: enough to find it in its file."""
_CONTROL_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They reorder the text around them; joiners, which many scripts need, do not."""

_REPR = reprlib.Repr()  # lists that contain themselves many times over have no other end
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = _REPR.maxset = 30
_REPR.maxlevel = 3
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 2 * MOST_CHARACTERS


def shown(value: object) -> str:
    """Return the `repr` of a value, cut after `MOST_CHARACTERS`."""
    text = _REPR.repr(value[: MOST_CHARACTERS + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, such as ``\x1b`` for the start of a terminal command."""
    if text.isprintable():
        return text
    return "".join(repr(character)[1:-1] if is_control(character) else character for character in text)


def is_control(character: str) -> bool:
    """Return whether a character controls the terminal: a line break, an escape, a change of direction."""
    return unicodedata.category(character) in _CONTROL_CATEGORIES or character in _DIRECTIONS


def has_control(text: str) -> bool:
    """Return whether a text has a character for which `is_control` is true."""
    return not text.isprintable() and any(map(is_control, text))
