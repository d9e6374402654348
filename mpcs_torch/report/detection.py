"""The report page of a detector."""

from pathlib import Path

from mpcs_torch.control_characters import printable
from mpcs_torch.files import replace_text
from mpcs_torch.plots import bayes_error_curve, det_curves, roc_with_hull, score_histograms
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.scoring import DetectionScores


def write_detection_report(name: str, found: DetectionScores, path: Path) -> None:
    """Write a page with the metrics of a detector and its DET curve, ROC, score histograms and (for LLRs) Bayes error.

    Args:
        name: The name of the detector, such as that of its file.
        found: The metrics.
        path: The HTML file to write.
    """
    name = printable(name)
    rates = found.summary.counts.rates()
    figures = [
        det_curves({name: rates}, points=found.points),
        roc_with_hull(rates, "ROC", area=found.summary.area.item()),
        score_histograms(rates, "scores"),
    ]
    if found.is_llr:
        figures.append(bayes_error_curve(rates, "normalised Bayes error"))
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
