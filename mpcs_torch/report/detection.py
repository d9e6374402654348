"""The report page of detectors."""

from pathlib import Path

from mpcs_torch.files import replace_text
from mpcs_torch.functional import Comparison, summarize_comparisons
from mpcs_torch.plots import (
    bayes_error_curves,
    condition_chart,
    det_curves,
    roc_curves,
    roc_with_hull,
    score_histograms,
)
from mpcs_torch.report.render import Drawing, draw, render
from mpcs_torch.scoring.bootstrap import EQUAL_ERROR
from mpcs_torch.scoring.conditions import Conditions
from mpcs_torch.scoring.detection_scores import DetectionScores, notes
from mpcs_torch.scoring.detector_results import Results


def write_detection_report(found: Results, path: Path, *, cluster: str | None, command: str = "") -> None:
    """Write a page with the metrics of detectors, their comparison and conditions, and their curves.

    Args:
        found: What was measured.
        path: The HTML file to write.
        cluster: The column of clusters that intervals take into account.
        command: The command line that made the report, for readers who want to repeat it.
    """
    first = next(iter(found.scores.values()))
    names = list(found.scores)
    verdict, *verdicts = _verdicts(found)
    page = render(
        "detection",
        name=", ".join(names) if len(names) < 4 else f"{len(names)} detectors",
        verdict=verdict,
        verdicts=verdicts,
        summary=[
            ("targets", str(int(first.summary.counts.targets))),
            ("non-targets", str(int(first.summary.counts.nontargets))),
            *[_fact(name, scores, alone=len(names) == 1) for name, scores in found.scores.items() if len(names) <= 4],
        ],
        reversed=[name for name, scores in found.scores.items() if scores.summary.area.item() < 0.5],
        metrics=(first if len(names) == 1 else found).table(),
        told=notes(list(found.scores.values()), cluster),
        comparisons=found.comparison_table() if found.comparisons else None,
        drawings=_drawings(found),
        columns=[
            {
                "name": column,
                "chart": _chart(column, [each for each in of_column if each.detector in _drawn(found)]),
                "tables": [(each.detector, each.table(), each.incomplete) for each in of_column],
            }
            for column, of_column in _by_column(found).items()
        ],
        commands=[command] if command else [],
    )
    replace_text(path, page)


def _verdicts(found: Results) -> list[str]:
    if found.comparisons:
        by_rate: list[Comparison] = sorted(found.comparisons, key=lambda row: row.measure != EQUAL_ERROR)
        return summarize_comparisons(by_rate)
    return [_sentence(name, scores) for name, scores in found.scores.items()]


def _sentence(name: str, scores: DetectionScores) -> str:
    own = next(value for value in scores.values if value.name == EQUAL_ERROR)
    interval = (
        "" if own.interval is None else " (95 % interval {:.3g} to {:.3g})".format(*(100 * end for end in own.interval))
    )
    area = scores.summary.area.item()
    told = f"{name} has an equal error rate of {100 * own.value:.3g} %{interval}"
    return f"{told}, and ranks a target above a non-target in {100 * area:.4g} % of pairs."


def _fact(name: str, scores: DetectionScores, *, alone: bool) -> tuple[str, str]:
    value = scores.value(EQUAL_ERROR)
    assert value is not None
    return f"equal error rate{'' if alone else f', {name}'}", f"{100 * value:.3g} %"


def _drawings(found: Results) -> list[Drawing]:
    drawn = {name: found.scores[name] for name in _drawn(found)}
    rates = {name: scores.summary.counts.rates() for name, scores in drawn.items()}
    scores = list(drawn.values())
    each = "; ".join(
        f"{name}: equal error rate {100 * (own.value(EQUAL_ERROR) or 0):.3g} %, area {own.summary.area.item():.4f}"
        for name, own in drawn.items()
    )
    drawings = [
        draw(
            det_curves(rates, points=scores[0].points, title="DET"),
            f"DET curves, miss rate over false-alarm rate. {each}.",
            "Lower is better. Boxes are intervals of both rates at the minimum costs.",
        )
    ]
    if len(rates) == 1:
        [(_name, curve)] = rates.items()
        drawings.append(draw(roc_with_hull(curve, "ROC", area=scores[0].summary.area.item()), f"ROC. {each}."))
        drawings.append(
            draw(
                score_histograms(curve, "Scores"),
                "Histograms of the scores of targets and of non-targets, with the threshold of equal error rates.",
            )
        )
    else:
        drawings.append(draw(roc_curves(rates, "ROC"), f"ROC curves. {each}."))
    ratios = {name: curve if drawn[name].is_llr else None for name, curve in rates.items()}
    if any(ratios.values()):
        drawings.append(
            draw(
                bayes_error_curves(ratios, "Normalised Bayes error"),
                "Normalised Bayes error of the likelihood ratios over all operating points.",
                "The gap between solid and dashed lines is due to calibration.",
            )
        )
    return drawings


def _drawn(found: Results) -> list[str]:
    """Return the detectors of the figures: a calibrated one has the curves of its scores as they were."""
    return list(found.compared or found.scores)


def _by_column(found: Results) -> dict[str, list[Conditions]]:
    columns: dict[str, list[Conditions]] = {}
    for conditions in found.conditions:
        columns.setdefault(conditions.column, []).append(conditions)
    return columns


def _chart(column: str, of_column: list[Conditions]) -> Drawing:
    names = of_column[0].worst_first()
    values = {each.detector: [each.value(name, EQUAL_ERROR) for name in names] for each in of_column}
    pooled = {each.detector: each.pooled_value(EQUAL_ERROR) for each in of_column}
    figure = condition_chart(values, pooled, names, metric=EQUAL_ERROR, column=column)
    alt = f"Equal error rate under each {column}, the worst first: {names[0]}." if names else f"No {column}."
    return draw(figure, alt)
