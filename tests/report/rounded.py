"""Numbers as pages and terminals show them."""

import re

NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]\d+)?|nan|inf)")


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, as they are written."""
    return NUMBER.findall(text)


def is_rounded(shown: str, value: float | None) -> bool:
    """Return whether a text shows a value, rounded to at least two digits; None stands for a value that JSON lacks."""
    if value is None or shown.lstrip("+-") in ("nan", "inf"):
        return value is None and shown.lstrip("+-") in ("nan", "inf")
    return any(float(shown) == float(f"{value:.{digits}g}") for digits in range(2, 16))


def shows(cell: str, *values: float | None) -> bool:
    """Return whether a cell shows all these values in this order, and no other number."""
    found = numbers_in(cell)
    return len(found) == len(values) and all(map(is_rounded, found, values))
