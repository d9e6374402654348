"""The report of a file of predictions."""

from pathlib import Path

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.control_characters import printable
from mpcs_torch.files import replace_text
from mpcs_torch.plots import confusion_matrix, reliability
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.scoring import Scores
from mpcs_torch.scoring.scores import MOST_CLASSES


def write_score_report(name: str, scores: Scores, concern: ConcernSpec | None, path: Path) -> None:
    """Write the table, and for hard labels the confusion matrix and the reliability figure."""
    figures, names = [], scores.class_names
    if scores.confusion is not None and len(names) <= MOST_CLASSES:
        nothing = torch.zeros(len(names), len(names), dtype=torch.bool)
        released = nothing if concern is None else concern.released()
        figures.append(confusion_matrix(scores.confusion, released, names, "confusion matrix"))
    if scores.measured is not None and scores.reported is not None:
        figures.append(reliability(scores.measured, scores.reported, "how certain it is, and how often right"))
    page = render(
        "score",
        name=printable(name),
        scores=scores,
        table=scores.table(),
        figures=[data_uri(f) for f in figures],
        most=MOST_CLASSES,
    )
    replace_text(path, page)
