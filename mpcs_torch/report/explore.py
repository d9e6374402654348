"""A page on which costs are set and tried on the predictions of models."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import printable
from mpcs_torch.evaluation.held_rows import HeldRows
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.learning.choice import FACTORS
from mpcs_torch.report.render import render

TEMPLATES = Path(__file__).with_name("templates")
MOST_GROUPS = 200
"""The most groups of a column whose values a page lists."""


def write_explorer(rows: HeldRows, concern: ConcernSpec | None, path: Path) -> None:
    """Write the page: one file that asks for nothing from elsewhere.

    Args:
        rows: What the models predict, and the labels.
        concern: The costs to begin with. Default: every error costs the same, and is dangerous.
        path: The HTML file to write.
    """
    spec = ConcernSpec(rows.class_names) if concern is None else concern
    data = {
        "classes": rows.class_names,
        "concern": concern_as_plain(spec),
        "factors": FACTORS,
        "labels": _packed(rows.target, "<u4"),
        "models": [{"name": printable(name), "probs": _packed(probs, "<f4")} for name, probs in rows.probs.items()],
        "columns": [
            {"name": printable(name), "groups": [printable(group) for group in names], "codes": _packed(codes, "<u4")}
            for name, (names, codes) in rows.groups.items()
        ],
    }
    names = ", ".join(printable(name) for name in rows.probs)
    page = render(
        "explore",
        name=names if len(rows.probs) < 4 else f"{len(rows.probs)} models",
        data=_embedded(data),
        scripts=[Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("explore_core.js", "explore.js")],
        style=Markup((TEMPLATES / "explore.css").read_text(encoding="utf-8")),
    )
    replace_text(path, page)


def _packed(values: Tensor, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values.numpy().astype(dtype)).tobytes()).decode()


def _embedded(data: dict[str, Any]) -> Markup:
    """Return JSON that no text in it can end early."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
