"""The report page about the scores of detectors."""

from pathlib import Path

import mpcs_torch.plots as plots
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.detector_scores import EQUAL_ERROR, INTERPOLATED, DetectorScores
from mpcs_torch.evaluation.detectors import MISSES
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.report.harm import MAX_SENTENCES
from mpcs_torch.report.render import (
    Drawing,
    draw,
    drawn_models,
    last_sections,
    named,
    part,
    write_page,
)
from mpcs_torch.tables import in_percent


def write_detection_report(
    result: Result[DetectorScores], path: Path, *, command: str = ""
) -> None:
    """Write an HTML page about detectors: metrics, comparisons, groups, curves, and the ``command`` that writes it."""
    names, title = list(result.models), named(result.models, "detectors")
    rates = {
        name: in_percent(scores.values[EQUAL_ERROR.name])
        for name, scores in result.models.items()
    }
    about = {
        name: f", {name}" if len(names) > 1 else "" for name in names if len(names) <= 4
    }
    facts = {f"equal error rate{end}": rates[name] for name, end in about.items()}
    det, *drawings = _drawings(result)
    cautions = [printable(f"{warning}.") for warning in result.warnings()]
    compared = summarize_comparisons(
        sorted(result.comparisons, key=lambda row: row.measure != INTERPOLATED.title)
    )
    rate_sentences = [
        _sentence(name, scores)
        for name, scores in result.models.items()
        if len(names) <= MAX_SENTENCES
    ]
    details = [
        part(
            "folded",
            "h2",
            "All metrics",
            part("table", result.table(), f"Metrics of {title}"),
        ),
        part("folded", "h2", "More curves", part("figures", drawings)),
    ]
    write_page(
        path,
        f"Detection scores of {title}",
        [*compared[:1], *rate_sentences],
        [part("cautions", cautions), part("facts", result.first.sizes() | facts)],
        [
            part("section", "Misses against false alarms", part("figures", [det])),
            *last_sections(result, "trials of detectors", compared[1:], details, command),
        ],
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
    drawn = {name: result.models[name] for name in drawn_models(result)}
    rates = {name: scores.summary.counts.rates() for name, scores in drawn.items()}
    scores = list(drawn.values())
    each = "; ".join(
        f"{name}: equal error rate {in_percent(one.values[EQUAL_ERROR.name])}, area {one.summary.area.item():.4f}"
        for name, one in drawn.items()
    )
    det = plots.det_curves(rates, points=scores[0].points, confidence=None, title="DET")
    caption = "Lower is better. Minimum costs have no intervals: their thresholds were chosen on these trials."
    drawings = [draw(det, f"DET curves, miss rate over false-alarm rate. {each}.", caption)]
    if len(rates) == 1:
        [curve] = rates.values()
        drawings.append(
            draw(
                plots.roc_curves(rates, "ROC"),
                f"ROC. {each}.",
            )
        )
        alt = "Histograms of the scores of targets and of non-targets, with the threshold of equal error rates."
        drawings.append(draw(plots.score_histograms(curve, "Scores"), alt))
    else:
        drawings.append(draw(plots.roc_curves(rates, "ROC"), f"ROC curves. {each}."))
    ratios = {name: curve if drawn[name].is_llr else None for name, curve in rates.items()}
    if any(ratios.values()):
        bayes = plots.bayes_error_curves(ratios, "Normalised Bayes error")
        alt = "Normalised Bayes error of the likelihood ratios over all operating points."
        drawings.append(
            draw(
                bayes, alt, "The gap between solid and dashed lines is due to calibration."
            )
        )
    return drawings
