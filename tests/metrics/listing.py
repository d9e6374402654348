"""Write the listing of the register for ``mpcs metrics``: ``python -m tests.metrics.listing``."""

import inspect
import json

from mpcs_torch.cli.verbs.metrics import LISTING
from mpcs_torch.metrics.register import ENTRIES, OF_CLASS

BETTER = {"min": "lower", "max": "higher", None: ""}


def listing() -> str:
    """Return the entries of the register as JSON, one in a line."""
    lines = [
        json.dumps(
            {
                "name": entry.name,
                "metric": entry.metric.__name__,
                "settings": ", ".join(f"{name}={value!r}" for name, value in entry.settings.items()),
                "better": BETTER[entry.direction],
                "takes": entry.takes.replace("_", " "),
                "computes": (inspect.getdoc(entry.metric) or "").splitlines()[0].replace("`_", "`"),
            }
        )
        for entry in (*ENTRIES, *OF_CLASS.values())
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")
