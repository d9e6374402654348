"""A page where readers set costs of errors and see their effect on the predictions of models."""

import base64
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import ConcernError, problem
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import printable
from mpcs_torch.evaluation.files.matched_rows import HeldRows
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.report.render import named, render

ABOUT = (
    "Probabilities are used as they are: decisions by cost need calibrated ones (mpcs calibrate). Intervals assume "
    "independent rows. Rows of one patient are not: true intervals are wider then (--cluster of mpcs score)."
)
EXACT = 1000
"""The maximum number of rows for which the page has an interval for every count; else it has intervals for some."""


def write_explorer(
    rows: HeldRows, concern: ConcernSpec | None, path: Path, *, reading: str = ""
) -> None:
    """Write an HTML file to ``path``, on which readers set costs and see their effect on the predictions ``rows``.

    The page begins with the costs of ``concern``, or if it is None, with equal costs. It shows commands, which contain
    ``reading``, the options for reading files.

    Raises:
        ConcernError: If the concern has a separate cost of a referral for each class.
    """
    spec = ConcernSpec(rows.class_names) if concern is None else concern
    if isinstance(spec.refer, tuple):
        raise ConcernError([problem("one_cost", "refer")])
    counted = [rows.target, torch.zeros_like(rows.target)]
    columns = list[dict[str, Any]]()
    for name, groups in rows.groups.items():
        counted.append(groups.codes)
        columns.append(
            {
                "name": printable(name),
                "groups": list(map(printable, groups.names)),
                "codes": _packed(groups.codes, "<u4"),
            }
        )
    sizes = torch.unique(torch.cat([codes.bincount() for codes in counted])).tolist()
    data = {
        "classes": rows.class_names,
        "concern": concern_as_plain(spec),
        "state": {
            "costs": without_diagonal(spec.mpcs_weights()).tolist(),
            "dangerous": spec.dangerous_pairs().tolist(),
            "refer": spec.refer,
            "factor": spec.factor,
        },
        "isNew": concern is None,
        "about": ABOUT,
        "reading": f" {reading}" if reading else "",
        "labels": _packed(rows.target, "<u4"),
        "models": [
            {"name": printable(name), "probs": _packed(probs, "<f4")}
            for name, probs in rows.probs.items()
        ],
        "columns": columns,
        "bounds": [
            {"of": size, "table": _packed(bounds_of_counts(size), "<f4")}
            for size in sizes
            if size > 0
        ],
    }
    render("explore", path, name=named(rows.probs), data=data)


def bounds_of_counts(size: int) -> Tensor:
    """Return (3, K): in row 0, counts out of ``size``; in rows 1 and 2, the ends of their 95 % intervals as shares.

    The counts ascend from 0 to ``size``. They are all counts if ``size`` is at most `EXACT`; otherwise, they are the
    counts near 0 and near ``size``, and about 1000 others.
    """
    counts = torch.arange(min(size, EXACT) + 1)
    if size > EXACT:
        near = counts[:200]
        # Shares of ``size`` that are densest near 0 and 1.
        steps = (counts.double() * torch.pi / (2 * EXACT)).sin().square()
        counts = torch.unique(torch.cat([near, (size * steps).round().long(), size - near]))
    ends = [clopper_pearson(count, size) for count in counts.tolist()]
    return torch.cat(
        [counts.double().unsqueeze(0), torch.tensor(ends, dtype=torch.float64).T]
    )


def _packed(values: Tensor, dtype: str) -> str:
    return base64.b64encode(values.numpy().astype(dtype).tobytes()).decode()
