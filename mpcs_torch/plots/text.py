"""Texts of the user in figures."""


def literal(name: str) -> str:
    """Escape a name for matplotlib: $ would start a formula, and a leading _ would hide it from the legend."""
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
