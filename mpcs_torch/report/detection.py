"""The scores of a detector as one page."""

from pathlib import Path

from mpcs_torch.files import replace_text
from mpcs_torch.plots import bayes_error_curve, det_curves, roc_with_hull, score_histograms
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.scoring import DetectionScores


def write_detection_report(name: str, found: DetectionScores, path: Path) -> None:
    """Write the table, the DET curve, the ROC, the scores' histograms and, of likelihood ratios, the Bayes error."""
    rates = found.summary.counts.rates()
    figures = [
        det_curves({name: rates}, points=found.points),
        roc_with_hull(rates, "ROC"),
        score_histograms(*found.trials, "scores"),
    ]
    if found.is_llr:
        figures.append(bayes_error_curve(*found.trials, "normalised Bayes error"))
    page = render(
        "detection",
        name=name,
        targets=int(rates.targets),
        nontargets=int(rates.nontargets),
        is_reversed=found.summary.area.item() < 0.5,
        table=found.table(),
        figures=[data_uri(figure) for figure in figures],
    )
    replace_text(path, page)
