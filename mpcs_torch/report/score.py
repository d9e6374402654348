"""The report of files of predictions."""

from math import isfinite, nan
from pathlib import Path

import torch
from matplotlib.figure import Figure

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.control_characters import printable
from mpcs_torch.errors import shown
from mpcs_torch.files import replace_text
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.plots import condition_chart, confusion_matrix, reliability
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.scoring.comparison_table import comparison_table
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.models import ModelScores
from mpcs_torch.scoring.scores import MOST_CLASSES, Scores


def write_score_report(found: ModelScores, concern: ConcernSpec | None, path: Path) -> None:
    """Write the tables, the comparison, and figures: for hard labels confusion matrices, and charts of groups.

    Args:
        found: What was measured.
        concern: Which errors matter.
        path: The HTML file to write.
    """
    names = list(found.scores)
    columns: dict[str, list[GroupScores]] = {}
    for groups in found.groups:
        columns.setdefault(groups.column, []).append(groups)
    page = render(
        "score",
        name=printable(names[0]) if len(names) == 1 else f"{len(names)} models",
        scores=found.first,
        verdicts=summarize_comparisons(found.comparisons),
        table=found.table(),
        notes=found.notes,
        comparisons=comparison_table(found.comparisons) if found.comparisons else None,
        figures=[data_uri(figure) for figure in _figures(found, concern)],
        columns=[
            {
                "name": column,
                "chart": data_uri(_chart(column, of_column)),
                "tables": [(f"{each.model}, {each.order()}", each.table()) for each in of_column],
            }
            for column, of_column in columns.items()
        ],
        most=MOST_CLASSES,
    )
    replace_text(path, page)


def _figures(found: ModelScores, concern: ConcernSpec | None) -> list[Figure]:
    if len(found.scores) > 1:
        return [figure for name, scores in found.scores.items() for figure in _confusion(scores, concern, name)]
    scores = found.first
    figures = _confusion(scores, concern, "confusion matrix")
    if scores.measured is not None and scores.reported is not None:
        figures.append(reliability(scores.measured, scores.reported, "how certain it is, and how often right"))
    return figures


def _confusion(scores: Scores, concern: ConcernSpec | None, title: str) -> list[Figure]:
    names = scores.class_names
    if scores.confusion is None or len(names) > MOST_CLASSES:
        return []
    nothing = torch.zeros(len(names), len(names), dtype=torch.bool)
    return [confusion_matrix(scores.confusion, nothing if concern is None else concern.released(), names, title)]


def _chart(column: str, of_column: list[GroupScores]) -> Figure:
    """Draw the metric that ranks groups, in the order of the first model."""
    first = of_column[0]
    metric, names = first.ranked_by, first.worst_first()
    values = {each.model: [_drawn(each.values[name][metric]) for name in names] for each in of_column}
    pooled = {each.model: _drawn(each.pooled.values[metric]) for each in of_column}
    return condition_chart(values, pooled, [shown(name) for name in names], metric=metric, column=column)


def _drawn(value: float) -> float:
    return value if isfinite(value) else nan
