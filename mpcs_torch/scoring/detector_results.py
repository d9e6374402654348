"""The metrics of one or several detectors, their comparison, and their conditions."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpcs_torch.evaluation.comparison_table import comparison_table
from mpcs_torch.functional import Comparison, OperatingPoint
from mpcs_torch.scoring.conditions import Conditions, score_conditions
from mpcs_torch.scoring.detection import score_detection
from mpcs_torch.scoring.detection_scores import DetectionScores
from mpcs_torch.scoring.detectors import Detector, compare_detectors
from mpcs_torch.scoring.thresholds import FixedThreshold
from mpcs_torch.scoring.trials import Groups
from mpcs_torch.tables import Table

Advance = Callable[[int], None]


class Results(NamedTuple):
    """All that is measured of some detectors."""

    scores: dict[str, DetectionScores]
    """By detector."""
    comparisons: list[Comparison]
    conditions: list[Conditions]
    """One for each detector and column."""
    compared: Sequence[str] = ()
    """The names of the detectors that are compared, in pairs; none if there is only one."""

    def table(self) -> Table:
        """Return a row for each metric and a column for each detector, with intervals."""
        names = list(dict.fromkeys(value.name for scores in self.scores.values() for value in scores.values))
        rows = [[name, *(_cell(scores, name) for scores in self.scores.values())] for name in names]
        return Table(["metric", *self.scores], rows)

    def comparison_table(self) -> Table:
        """Return a row for each pair of detectors and metric."""
        return comparison_table(self.comparisons)


def measure_detectors(
    detectors: Sequence[Detector],
    fixed: Sequence[Sequence[FixedThreshold]],
    points: Sequence[OperatingPoint],
    *,
    compared: Sequence[str] = (),
    clusters: Groups | None = None,
    conditions: dict[str, Groups],
    resamples: int,
    max_p_fa: float | None = None,
    advance: Advance,
) -> Results:
    """Measure detectors on the same trials.

    Args:
        detectors: At least one; with the same trials in the same order.
        fixed: For each detector, thresholds that were not chosen on these trials.
        points: The operating points.
        compared: The names of the detectors that are compared in pairs.
        clusters: The clusters of trials that are not independent. Default: all are independent.
        conditions: Groups of trials, by column, for each of which the metrics are computed too.
        resamples: The number of bootstrap resamples; 0 for no bootstrap and no comparison.
        max_p_fa: As in `score_detection`.
        advance: Called with the number of resamples after each batch.

    Raises:
        ValueError: If an operating point breaks its rule, or the clusters are too few.
    """
    codes = None if clusters is None else clusters.codes
    pairs = list(zip(detectors, fixed, strict=True))
    scores = {
        detector.name: score_detection(
            detector.trials,
            points,
            is_llr=detector.is_llr,
            resamples=resamples,
            fixed=own,
            clusters=codes,
            max_p_fa=max_p_fa,
            advance=advance,
        )
        for detector, own in pairs
    }
    comparisons: list[Comparison] = []
    wanted = [(detector, own) for detector, own in pairs if detector.name in compared]
    if len(wanted) > 1 and resamples:
        comparisons = compare_detectors(
            [detector for detector, _ in wanted],
            points,
            [own for _, own in wanted],
            resamples=resamples,
            clusters=codes,
            advance=advance,
        )
    by_condition = [
        score_conditions(detector, scores[detector.name], column, groups, points, own, max_p_fa)
        for column, groups in conditions.items()
        for detector, own in pairs
    ]
    return Results(scores, comparisons, by_condition, compared)


def _cell(scores: DetectionScores, name: str) -> str:
    value = next((value for value in scores.values if value.name == name), None)
    if value is None:
        return ""
    interval = "" if value.interval is None else f" ({value.interval[0]:.4g} to {value.interval[1]:.4g})"
    return f"{value.value:.5g}{interval}"
