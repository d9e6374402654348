"""The report page of detectors."""

from pathlib import Path

from matplotlib.figure import Figure

from mpcs_torch.files import replace_text
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.plots import (
    bayes_error_curves,
    condition_chart,
    det_curves,
    roc_curves,
    roc_with_hull,
    score_histograms,
)
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.scoring.bootstrap import EQUAL_ERROR
from mpcs_torch.scoring.conditions import Conditions
from mpcs_torch.scoring.detection_scores import notes
from mpcs_torch.scoring.detector_results import Results


def write_detection_report(found: Results, path: Path, *, cluster: str | None) -> None:
    """Write a page with the metrics of detectors, their comparison and conditions, and their curves.

    Args:
        found: What was measured.
        path: The HTML file to write.
        cluster: The column of clusters that intervals take into account.
    """
    first = next(iter(found.scores.values()))
    names = list(found.scores)
    page = render(
        "detection",
        name=names[0] if len(names) == 1 else f"{len(names)} detectors",
        targets=int(first.summary.counts.targets),
        nontargets=int(first.summary.counts.nontargets),
        reversed=[name for name, scores in found.scores.items() if scores.summary.area.item() < 0.5],
        verdicts=summarize_comparisons(found.comparisons),
        table=(first if len(names) == 1 else found).table(),
        notes=notes(list(found.scores.values()), cluster),
        comparisons=found.comparison_table() if found.comparisons else None,
        figures=[data_uri(figure) for figure in _figures(found)],
        columns=[
            {
                "name": column,
                "chart": data_uri(_chart(column, [each for each in of_column if each.detector in _drawn(found)])),
                "tables": [(each.detector, each.table(), each.incomplete) for each in of_column],
            }
            for column, of_column in _by_column(found).items()
        ],
    )
    replace_text(path, page)


def _figures(found: Results) -> list[Figure]:
    drawn = {name: found.scores[name] for name in _drawn(found)}
    rates = {name: scores.summary.counts.rates() for name, scores in drawn.items()}
    scores = list(drawn.values())
    figures = [det_curves(rates, points=scores[0].points)]
    if len(rates) == 1:
        [(_name, curve)] = rates.items()
        figures.append(roc_with_hull(curve, "ROC", area=scores[0].summary.area.item()))
        figures.append(score_histograms(curve, "scores"))
    else:
        figures.append(roc_curves(rates, "ROC"))
    ratios = {name: curve if drawn[name].is_llr else None for name, curve in rates.items()}
    if any(ratios.values()):
        figures.append(bayes_error_curves(ratios, "normalised Bayes error"))
    return figures


def _drawn(found: Results) -> list[str]:
    """Return the detectors of the figures: a calibrated one has the curves of its scores as they were."""
    return list(found.compared or found.scores)


def _by_column(found: Results) -> dict[str, list[Conditions]]:
    columns: dict[str, list[Conditions]] = {}
    for conditions in found.conditions:
        columns.setdefault(conditions.column, []).append(conditions)
    return columns


def _chart(column: str, of_column: list[Conditions]) -> Figure:
    names = of_column[0].worst_first()
    values = {each.detector: [each.value(name, EQUAL_ERROR) for name in names] for each in of_column}
    pooled = {each.detector: each.pooled_value(EQUAL_ERROR) for each in of_column}
    return condition_chart(values, pooled, names, metric=EQUAL_ERROR, column=column)
