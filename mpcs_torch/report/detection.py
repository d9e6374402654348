"""The report page about the scores of detectors."""

from pathlib import Path

import mpcs_torch.plots as plots
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.detector_scores import EQUAL_ERROR, INTERPOLATED, DetectorScores
from mpcs_torch.evaluation.detectors import MISSES
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.report.error_counts import MAX_SENTENCES, explanations
from mpcs_torch.report.render import Drawing, draw, drawn_models, named, render
from mpcs_torch.tables import in_percent


def write_detection_report(
    result: Result[DetectorScores], path: Path, *, command: str
) -> None:
    """Write an HTML page about detectors: metrics, comparisons, groups, curves, and the ``command`` that writes it."""
    tiles = dict[str, object](result.first.sizes())
    if len(result.models) <= 4:
        for name, scores in result.models.items():
            end = f", {name}" if len(result.models) > 1 else ""
            rate = in_percent(scores.values[EQUAL_ERROR.name])
            tiles[f"equal error rate{end}"] = rate
    compared = summarize_comparisons(
        sorted(result.comparisons, key=lambda row: row.measure != INTERPOLATED.title)
    )
    conclusions = compared[:1]
    if len(result.models) <= MAX_SENTENCES:
        conclusions += [_sentence(*item) for item in result.models.items()]
    title = named(result.models, "detectors")
    render(
        "detection",
        path,
        kind=f"Detection scores of {title}",
        title=title,
        conclusions=conclusions,
        result=result,
        tiles=tiles,
        drawings=_drawings(result),
        warnings=[printable(f"{warning}.") for warning in result.warnings()],
        compared=compared,
        terms=explanations(result),
        command=command,
    )


def _sentence(name: str, scores: DetectorScores) -> str:
    ends = scores.intervals.get(EQUAL_ERROR.name)
    interval = (
        ""
        if ends is None
        else f" ({CONFIDENCE_TEXT} interval {100 * ends[0]:.3g} to {100 * ends[1]:.3g})"
    )
    sentence = f"{name} has an equal error rate of {in_percent(scores.values[EQUAL_ERROR.name])}{interval}"
    ranked = f"{sentence}, and ranks a target above a non-target in {100 * scores.summary.area.item():.4g} % of pairs."
    at = [
        (limit, scores.values.get(f"false_alarm_rate[p_miss={limit:g}]"))
        for limit in MISSES
    ]
    rates = [
        f"{in_percent(rate)} at {100 * (1 - limit):g} % sensitivity"
        for limit, rate in at
        if rate is not None
    ]
    return f"{ranked} False alarms: {' and '.join(rates)}." if rates else ranked


def _drawings(result: Result[DetectorScores]) -> list[Drawing]:
    shown = {name: result.models[name] for name in drawn_models(result)}
    rates = {name: scores.summary.counts.rates() for name, scores in shown.items()}
    points = next(iter(shown.values())).points
    each = "; ".join(
        f"{name}: equal error rate {in_percent(one.values[EQUAL_ERROR.name])}, area {one.summary.area.item():.4f}"
        for name, one in shown.items()
    )
    det = plots.det_curves(rates, points=points, confidence=None, title="DET")
    caption = "Lower is better. Minimum costs have no intervals: their thresholds were chosen on these trials."
    roc = "ROC" if len(rates) == 1 else "ROC curves"
    drawings = [
        draw(det, f"DET curves, miss rate over false-alarm rate. {each}.", caption),
        draw(plots.roc_curves(rates, "ROC"), f"{roc}. {each}."),
    ]
    if len(rates) == 1:
        [curve] = rates.values()
        alt = "Histograms of the scores of targets and of non-targets, with the threshold of equal error rates."
        drawings.append(draw(plots.score_histograms(curve, "Scores"), alt))
    ratios = {name: curve if shown[name].is_llr else None for name, curve in rates.items()}
    if any(ratios.values()):
        bayes = plots.bayes_error_curves(ratios, "Normalised Bayes error")
        alt = "Normalised Bayes error of the likelihood ratios over all operating points."
        caption = "The gap between solid and dashed lines is due to calibration."
        drawings.append(draw(bayes, alt, caption))
    return drawings
