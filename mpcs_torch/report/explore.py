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
from mpcs_torch.learning.decision_rule import CalibrationMethod
from mpcs_torch.report.render import render

TEMPLATES = Path(__file__).with_name("templates")
SMALL_FACTORS = (0.05, 0.02, 0.01)
"""Further costs of a harmless error on the page's curve, for costs that are far apart."""
CALIBRATED = {
    "temperature": "Probabilities are calibrated by a temperature, those of each fifth of the rows by the other rows.",
    "vector": "Probabilities are calibrated by a scale and bias for each class, those of each fifth by the other rows.",
    None: "Probabilities are used as they are, without calibration.",
}
INDEPENDENT = (
    "Intervals and limits here are for independent rows. Rows of one patient are not independent: true intervals are "
    "wider then, and limits take more patients than this page says (--cluster of mpcs decide fit and mpcs score)."
)


def write_explorer(
    rows: HeldRows,
    concern: ConcernSpec | None,
    path: Path,
    *,
    calibration: CalibrationMethod = "temperature",
    reading: str = "",
) -> None:
    """Write the page, one file that asks for nothing from elsewhere; it begins with equal costs if there is no concern.

    Readers are told of the calibration; the commands that the page shows have the options for reading files.
    """
    spec = ConcernSpec(rows.class_names) if concern is None else concern
    data = {
        "classes": rows.class_names,
        "concern": concern_as_plain(spec),
        "isNew": concern is None,
        "about": f"{INDEPENDENT} {CALIBRATED[calibration]}",
        "reading": f" {reading}" if reading else "",
        "factors": [*FACTORS, *SMALL_FACTORS],
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
        is_new=concern is None,
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
