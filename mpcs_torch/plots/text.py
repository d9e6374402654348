"""Names of the user's as figures show them."""


def literal(name: str) -> str:
    """A name that matplotlib shows as it is: $ begins no formula, and a leading _ hides it from no legend."""
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown
