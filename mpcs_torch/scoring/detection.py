"""The metrics of a file of detection scores, with confidence intervals."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import DetectionCost, DetectionSummary, OperatingPoint, clopper_pearson, meets_rule_of_30
from mpcs_torch.functional.detection.bayes_error import LOG_ODDS
from mpcs_torch.functional.detection.cost import cost_at
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import (
    ErrorCounts,
    checked_scores,
    count_errors,
    middle_of,
    warn_if_reversed,
)
from mpcs_torch.functional.detection.llr_cost import softplus
from mpcs_torch.functional.detection.operating_point import as_points
from mpcs_torch.functional.detection.summary import summary_of
from mpcs_torch.functional.detection.visible import bin_edges, drawn_range
from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.scoring.bootstrap import AREA, CLLR, EQUAL_ERROR, actual_cost, bootstrap_intervals, mean_cost
from mpcs_torch.scoring.shares import errors_of_all, exchange_ranges, thresholds_that_matter
from mpcs_torch.scoring.trials import Trials
from mpcs_torch.tables import Table

CONFIDENCE = 0.95


class Value(NamedTuple):
    """A metric of a detector and its value."""

    name: str
    value: float
    interval: tuple[float, float] | None
    """The bootstrap interval."""
    cost: DetectionCost | None
    """The error rates and threshold behind the value; for the equal error rate, those where the rates differ least."""


class DetectionScores(NamedTuple):
    """The metrics of a file of detection scores."""

    points: list[OperatingPoint]
    is_llr: bool
    summary: DetectionSummary
    values: list[Value]

    def named(self) -> dict[str, float]:
        """Return all numbers by name: values, ends of intervals, thresholds and error rates."""
        named: dict[str, float] = {}
        for name, value, interval, cost in self.values:
            named[name] = value
            if interval is not None:
                named |= {f"{name}, low": interval[0], f"{name}, high": interval[1]}
            if cost is not None:
                details = {"threshold": cost.threshold, "miss rate": cost.p_miss, "false-alarm rate": cost.p_fa}
                named |= {f"{name}, {key}": number.item() for key, number in details.items()}
        return named

    def table(self) -> Table:
        """Return a table with a row for each metric; an asterisk marks rates based on fewer than 30 errors."""
        bootstrap = f"{100 * CONFIDENCE:g} % (bootstrap)"
        header = ["metric", "value", bootstrap, "threshold", "miss rate, %", "false-alarm rate, %"]
        rows = []
        for name, value, ends, cost in self.values:
            interval = "" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"
            rows.append([name, f"{value:.5g}", interval, *self._cost_cells(cost)])
        return Table(header, rows)

    def _cost_cells(self, cost: DetectionCost | None) -> list[str]:
        if cost is None:
            return ["", "", ""]
        counts = self.summary.counts
        rates = _rate(cost.p_miss, counts.targets), _rate(cost.p_fa, counts.nontargets)
        return [f"{cost.threshold.item():.5g}", *rates]


def score_detection(
    trials: Trials,
    points: Sequence[OperatingPoint],
    *,
    is_llr: bool,
    resamples: int,
    advance: Callable[[], None] = lambda: None,
    world: World = ALONE,
) -> DetectionScores:
    """Compute the metrics of a detector from one sort of its scores.

    Args:
        trials: Scores and labels; those that this process has read.
        points: The operating points of the minimum costs, and with ``is_llr`` also of the actual costs.
        is_llr: Whether scores are natural-log likelihood ratios: adds Cllr and the costs at the Bayes thresholds.
        resamples: The number of bootstrap resamples; 0 for no intervals.
        advance: Called after each resample, to show progress.
        world: The processes that hold the trials, all of which return the values of the whole. Default: this one.

    Raises:
        ValueError: If an operating point or the number of resamples breaks its rule.
    """
    points = as_points(points)
    trials = exchange_ranges(trials, world) if world.size > 1 else Trials(*checked_scores(*trials))
    own = count_errors(*trials)
    looked_up = _looked_up(own, points, is_llr=is_llr, world=world)
    counts, area = errors_of_all(own, world, lambda curve: thresholds_that_matter(curve, points, looked_up))
    warn_if_reversed(area)
    summary = summary_of(counts, area, points)
    cllr = None
    if is_llr:
        costs = softplus(-trials.scores[trials.labels]), softplus(trials.scores[~trials.labels])
        cllr = mean_cost(costs, [int(counts.targets), int(counts.nontargets)], world)
    intervals: dict[str, tuple[float, float]] = {}
    if resamples:
        intervals = bootstrap_intervals(
            trials,
            own,
            points,
            is_llr=is_llr,
            resamples=resamples,
            confidence=CONFIDENCE,
            advance=advance,
            world=world,
        )
    found = [
        Value(name, value.item(), intervals.get(name), cost) for name, value, cost in _values(summary, points, cllr)
    ]
    return DetectionScores(list(points), is_llr, summary, found)


def _looked_up(own: ErrorCounts, points: Sequence[OperatingPoint], *, is_llr: bool, world: World) -> Tensor:
    """Return the thresholds at which values and figures look up the errors."""
    low, high = zip(*world.told_by_all(drawn_range(own.thresholds)), strict=True)
    edges = bin_edges(min(low), max(high))
    if not is_llr:
        return edges
    return torch.cat([edges, edges.new_tensor([point.bayes_threshold for point in points]), -LOG_ODDS])


def _values(
    summary: DetectionSummary, points: Sequence[OperatingPoint], cllr: Tensor | None
) -> list[tuple[str, Tensor, DetectionCost | None]]:
    minimum = [
        (f"minimum cost, {point.label()}", cost.normalized, cost)
        for point, cost in zip(points, summary.min_costs, strict=True)
    ]
    nearest = equal_error_of(summary.counts, "nearest")
    threshold = middle_of(nearest.low, nearest.high).item()
    values: list[tuple[str, Tensor, DetectionCost | None]] = [
        (EQUAL_ERROR, summary.equal_error.rate, cost_at(summary.counts, OperatingPoint(0.5), threshold)),
        (AREA, summary.area, None),
        *minimum,
        (f"minimum {CLLR}", summary.min_cllr, None),
    ]
    if cllr is not None:
        for point in points:
            cost = cost_at(summary.counts, point, point.bayes_threshold)
            values.append((actual_cost(point), cost.normalized, cost))
        values += [(CLLR, cllr, None), ("calibration loss", cllr - summary.min_cllr, None)]
    return values


def _rate(rate: Tensor, trials: Tensor) -> str:
    """Format a rate in percent with its Clopper-Pearson interval."""
    errors = round((rate * trials).item())
    low, high = clopper_pearson(errors, int(trials), confidence=CONFIDENCE)
    return f"{100 * rate.item():.3g}{'' if meets_rule_of_30(errors) else '*'} ({100 * low:.3g} to {100 * high:.3g})"
