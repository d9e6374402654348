"""The scores of a file of predictions as one page."""

from pathlib import Path

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.learning.atomic_files import replace_text
from mpcs_torch.plots import confusion_matrix, reliability
from mpcs_torch.report.html import data_uri, render
from mpcs_torch.scoring import Scores

MOST_CLASSES = 30
"""A larger confusion matrix cannot be read."""


def write_score_report(name: str, scores: Scores, concern: ConcernSpec | None, path: Path) -> None:
    """Write the table, and for hard labels the confusion matrix and the reliability figure."""
    figures = []
    if scores.confusion is not None and scores.classes <= MOST_CLASSES:
        nothing = torch.zeros(scores.classes, scores.classes, dtype=torch.bool)
        released = nothing if concern is None else concern.released()
        names = [str(label) for label in range(scores.classes)] if concern is None else list(concern.class_names)
        figures.append(confusion_matrix(scores.confusion, released, names, "confusion matrix"))
    if scores.measured is not None and scores.reported is not None:
        figures.append(reliability(scores.measured, scores.reported, "how certain it is, and how often right"))
    page = render("score", name=name, scores=scores, table=scores.table(), figures=[data_uri(f) for f in figures])
    replace_text(path, page)
