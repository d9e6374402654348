"""The values of a detector, with the thresholds and the error rates behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mpcs_torch.evaluation.scores import DetectorMetric, Interval, Scores, interval_text
from mpcs_torch.functional import DetectionCost, DetectionSummary, OperatingPoint, meets_rule_of_30
from mpcs_torch.tables import Table

EQUAL_ERROR = DetectorMetric("equal_error_rate", "equal error rate", in_group_tables=True, group_rank=0)
INTERPOLATED = DetectorMetric("equal_error_rate_interpolated", "equal error rate (interpolated)")
AREA = DetectorMetric("area_under_roc", "area under the ROC", "max")
CLLR = DetectorMetric("cllr", "Cllr", in_group_tables=True)


class ErrorsAt(NamedTuple):
    """The errors at a threshold."""

    cost: DetectionCost
    """For the equal error rate, at the threshold where the rates differ least."""
    miss_rate: Interval | None = None
    """Its interval; None if the threshold was chosen on these trials, or if no intervals were asked for."""
    false_alarm_rate: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class DetectorScores(Scores):
    """The values of some trials."""

    summary: DetectionSummary
    points: Sequence[OperatingPoint]
    is_llr: bool
    entries: Sequence[DetectorMetric]
    errors: Mapping[str, ErrorsAt] = field(default_factory=dict)
    """By metric, of those that are measured at one threshold."""

    def headline(self) -> str:
        """Say how many trials there are."""
        return ", ".join(f"{number} {kind}" for kind, number in self.sizes().items())

    def sizes(self) -> dict[str, int]:
        """Return the numbers of targets and of non-targets."""
        return {"targets": int(self.summary.counts.targets), "non-targets": int(self.summary.counts.nontargets)}

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric; an asterisk marks rates based on fewer than 30 errors."""
        header = ["metric", "value", "95 %", "threshold", "miss rate, %", "false-alarm rate, %"]
        names = list(self.values) if names is None else names
        rows = [[name, f"{self.values[name]:.5g}", self.interval(name), *self._cost_cells(name)] for name in names]
        return Table(header, rows)

    def remarks(self) -> list[str]:
        """Return what costs mean, and why metrics have no value or no interval, in sentences."""
        return [
            "Costs are divided by that of the better constant decision (accept all or reject all).",
            *super().remarks(),
        ]

    def table_remarks(self) -> list[str]:
        """Return what the rates beside the values are, in sentences."""
        remarks = []
        at, equal = self.errors[EQUAL_ERROR.name].cost, f"{100 * self.values[EQUAL_ERROR.name]:.3g}"
        if any(f"{100 * rate.item():.3g}" != equal for rate in (at.p_miss, at.p_fa)):
            remarks.append(
                "The equal error rate is read off the convex hull of the ROC (ROCCH), whose points mix two thresholds "
                "at random; the rates beside it are those of one actual threshold, the one where they differ least."
            )
        if any("*" in cell for name in self.values for cell in self._cost_cells(name)):
            remarks.append("* fewer than 30 errors: may be off by more than 30 %.")
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return values, intervals, titles, errors at thresholds and the convex hull of the ROC."""
        hull = self.summary.hull.rates()
        errors = {
            name: {
                "threshold": at.cost.threshold.item(),
                "miss_rate": at.cost.p_miss.item(),
                "false_alarm_rate": at.cost.p_fa.item(),
                **({} if at.miss_rate is None else {"miss_rate_interval": at.miss_rate}),
                **({} if at.false_alarm_rate is None else {"false_alarm_rate_interval": at.false_alarm_rate}),
            }
            for name, at in self.errors.items()
        }
        titles = {entry.name: entry.title for entry in self.entries}
        hull_rates = {"miss_rate": hull.p_miss.tolist(), "false_alarm_rate": hull.p_fa.tolist()}
        return {**super().to_dict(), "titles": titles, "errors": errors, "convex_hull": hull_rates}

    def _cost_cells(self, name: str) -> list[str]:
        at = self.errors.get(name)
        if at is None:
            return ["", "", ""]
        cells = [f"{at.cost.threshold.item():.5g}"]
        rates, intervals = (at.cost.p_miss.item(), at.cost.p_fa.item()), (at.miss_rate, at.false_alarm_rate)
        for rate, trials, ends in zip(rates, self.sizes().values(), intervals, strict=True):
            mark = "" if meets_rule_of_30(round(rate * trials)) else "*"
            interval = "" if ends is None else f" ({interval_text((100 * ends[0], 100 * ends[1]), 3)})"
            cells.append(f"{100 * rate:.3g}{mark}{interval}")
        return cells


def det_points(detectors: Mapping[str, DetectorScores]) -> Table:
    """Return the points of the DET curves: the error rates of each detector at each of its thresholds, ascending."""
    rows = list[list[str]]()
    for name, scores in detectors.items():
        rates = scores.summary.counts.rates()
        columns = (rates.thresholds.tolist(), rates.p_miss.tolist(), rates.p_fa.tolist())
        rows += [[name, *map(repr, point)] for point in zip(*columns, strict=True)]
    return Table(["detector", "threshold", "miss_rate", "false_alarm_rate"], rows)
