"""The metrics of a detector on some trials, with confidence intervals that hold."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mpcs_torch.functional import DetectionCost, DetectionSummary, OperatingPoint, clopper_pearson, cost_interval
from mpcs_torch.functional.detection.area import break_even_of, partial_auc_of
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
from mpcs_torch.functional.detection.h_measure import h_measure_of
from mpcs_torch.functional.detection.llr_cost import softplus
from mpcs_torch.functional.detection.operating_point import as_points
from mpcs_torch.functional.detection.summary import summary_of
from mpcs_torch.functional.detection.visible import bin_edges, drawn_range
from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.scoring.bootstrap import (
    AREA,
    CLLR,
    EQUAL_ERROR,
    H_MEASURE,
    INTERPOLATED,
    bootstrap_intervals,
    mean_cost,
)
from mpcs_torch.scoring.cluster_intervals import cluster_intervals
from mpcs_torch.scoring.detection_scores import CONFIDENCE, DetectionScores, Interval, Value
from mpcs_torch.scoring.shares import errors_of_all, exchange_ranges, thresholds_that_matter
from mpcs_torch.scoring.thresholds import EVEN, FixedThreshold, bayes_thresholds
from mpcs_torch.scoring.trials import Trials


def score_detection(
    trials: Trials,
    points: Sequence[OperatingPoint],
    *,
    is_llr: bool,
    resamples: int,
    fixed: Sequence[FixedThreshold] = (),
    clusters: Tensor | None = None,
    max_p_fa: float | None = None,
    advance: Callable[[int], None] = lambda _: None,
    world: World = ALONE,
) -> DetectionScores:
    """Compute the metrics of a detector from one sort of its scores.

    Minimum costs, the minimum Cllr and the calibration loss have no interval: none is known that holds. Other costs and
    error rates have those of `cost_interval` and `clopper_pearson`, the equal error rate, the area and Cllr those of
    the bootstrap. With clusters, all are of the bootstrap, which then draws whole clusters.

    Args:
        trials: Scores and labels; those that this process has read.
        points: The operating points of the minimum costs, and with ``is_llr`` also of the actual costs.
        is_llr: Whether scores are natural-log likelihood ratios: adds Cllr and the costs at the Bayes thresholds.
        resamples: The number of bootstrap resamples; 0 for no bootstrap.
        fixed: Thresholds from elsewhere, to be measured too.
        clusters: ``(N,)`` codes of the clusters of trials, such as speakers. Default: trials are independent.
        max_p_fa: Adds the standardised area under the ROC up to this false-alarm rate, in (0, 1]; for one process.
        advance: Called with the number of resamples after each batch, to show progress.
        world: The processes that hold the trials, all of which return the values of the whole. Default: this one.

    Raises:
        ValueError: If an operating point or the number of resamples breaks its rule, or the clusters are too few.
    """
    points = as_points(points)
    trials = exchange_ranges(trials, world) if world.size > 1 else Trials(*checked_scores(*trials))
    fixed = [*(bayes_thresholds(points) if is_llr else []), *fixed]
    own = count_errors(*trials)
    looked_up = _looked_up(own, fixed, is_llr=is_llr, world=world)
    counts, area = errors_of_all(own, world, lambda curve: thresholds_that_matter(curve, points, looked_up))
    warn_if_reversed(area)
    summary = summary_of(counts, area, points)
    found = _chosen_here(summary, points)
    if max_p_fa is not None:
        area = partial_auc_of(counts, max_p_fa)
        found.insert(3, Value(f"{AREA} up to {100 * max_p_fa:g} % false alarms", area.item()))
    if is_llr:
        costs = softplus(-trials.scores[trials.labels]), softplus(trials.scores[~trials.labels])
        cllr = mean_cost(costs, [int(counts.targets), int(counts.nontargets)], world).item()
        found += [Value(CLLR, cllr), Value("calibration loss", cllr - summary.min_cllr.item())]
    found += [_at(threshold, counts) for threshold in fixed]
    if clusters is not None:
        found = (
            cluster_intervals(found, fixed, trials, clusters, resamples, CONFIDENCE, advance) if resamples else found
        )
        return DetectionScores(points, is_llr, summary, found)
    intervals: dict[str, Interval] = {}
    if resamples:
        intervals = bootstrap_intervals(
            trials, own, is_llr=is_llr, resamples=resamples, confidence=CONFIDENCE, advance=advance, world=world
        )
    by_name = {threshold.name: threshold for threshold in fixed}
    found = [
        _with_exact_intervals(value, by_name[value.name], counts)
        if value.name in by_name
        else value._replace(interval=intervals.get(value.name))
        for value in found
    ]
    return DetectionScores(points, is_llr, summary, found)


def _looked_up(own: ErrorCounts, fixed: Sequence[FixedThreshold], *, is_llr: bool, world: World) -> Tensor:
    """Return the thresholds at which values and figures look up the errors."""
    low, high = zip(*world.told_by_all(drawn_range(own.thresholds)), strict=True)
    edges = bin_edges(min(low), max(high))
    places = [edges, edges.new_tensor([threshold.threshold for threshold in fixed])]
    return torch.cat([*places, -LOG_ODDS] if is_llr else places)


def _chosen_here(summary: DetectionSummary, points: Sequence[OperatingPoint]) -> list[Value]:
    """Return the values whose thresholds are the best on the same trials."""
    nearest = equal_error_of(summary.counts, "nearest")
    equal = cost_at(summary.counts, EVEN, middle_of(nearest.low, nearest.high).item())
    minimum = [
        Value(f"minimum cost, {point.label()}", cost.normalized.item(), cost=cost)
        for point, cost in zip(points, summary.min_costs, strict=True)
    ]
    return [
        Value(EQUAL_ERROR, summary.equal_error.rate.item(), cost=equal),
        Value(INTERPOLATED, equal_error_of(summary.counts, "interpolated").rate.item()),
        Value(AREA, summary.area.item()),
        Value(H_MEASURE, h_measure_of(summary.hull.rates()).item()),
        Value("precision-recall break-even, errors", break_even_of(summary.hull).item()),
        *minimum,
        Value(f"minimum {CLLR}", summary.min_cllr.item()),
    ]


def _at(fixed: FixedThreshold, counts: ErrorCounts) -> Value:
    cost = cost_at(counts, fixed.point, fixed.threshold)
    return Value(fixed.name, _shown(fixed, cost).item(), cost=cost)


def _shown(fixed: FixedThreshold, cost: DetectionCost) -> Tensor:
    match fixed.shown:
        case "cost":
            return cost.normalized
        case "half total error rate":
            return cost.cost
        case "miss rate":
            return cost.p_miss
        case "false-alarm rate":
            return cost.p_fa


def _with_exact_intervals(value: Value, fixed: FixedThreshold, counts: ErrorCounts) -> Value:
    assert value.cost is not None
    targets, nontargets = int(counts.targets), int(counts.nontargets)
    misses, alarms = round(value.cost.p_miss.item() * targets), round(value.cost.p_fa.item() * nontargets)
    of_misses = clopper_pearson(misses, targets, confidence=CONFIDENCE)
    of_alarms = clopper_pearson(alarms, nontargets, confidence=CONFIDENCE)
    interval = {"miss rate": of_misses, "false-alarm rate": of_alarms}.get(fixed.shown)
    if interval is None:
        interval = cost_interval(
            misses,
            targets,
            alarms,
            nontargets,
            point=fixed.point,
            normalize=fixed.shown == "cost",
            confidence=CONFIDENCE,
        )
    return value._replace(interval=interval, rates=(of_misses, of_alarms))
