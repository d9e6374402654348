"""Bootstrap intervals of the metrics of detection scores."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection.bootstrap import Resample, interval_of_resamples, turning_points
from mpcs_torch.functional.detection.cost import cost_at
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorCounts, area_under_roc
from mpcs_torch.functional.detection.llr_cost import mean_cost_of, softplus
from mpcs_torch.scoring.trials import Trials

Statistic = Callable[[Resample], Tensor]
EQUAL_ERROR, AREA, CLLR = "equal error rate", "area under the ROC", "Cllr"


def actual_cost(point: OperatingPoint) -> str:
    """Return the name of the actual cost at an operating point."""
    return f"actual cost, {point.label()}"


def bootstrap_intervals(
    trials: Trials,
    counts: ErrorCounts,
    points: Sequence[OperatingPoint],
    *,
    is_llr: bool,
    resamples: int,
    confidence: float,
    advance: Callable[[], None],
) -> dict[str, tuple[float, float]]:
    """Compute the intervals of the metrics that have one, by name, from the errors at all thresholds of the trials.

    Minimum costs and the calibration loss have none: resamples repeat scores, which the best threshold overfits.
    """
    statistics: list[Statistic] = [_curve_statistic(counts, points if is_llr else [])]
    names = [EQUAL_ERROR, AREA]
    if is_llr:
        names += [*map(actual_cost, points), CLLR]
        statistics.append(_cllr_statistic(trials))
    low, high = interval_of_resamples(
        lambda drawn: torch.cat([statistic(drawn) for statistic in statistics]),
        int(counts.targets),
        int(counts.nontargets),
        trials.scores.device,
        resamples=resamples,
        confidence=confidence,
        advance=advance,
    )
    return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _curve_statistic(counts: ErrorCounts, points: Sequence[OperatingPoint]) -> Statistic:
    """Return a function that computes equal error rate, area, and the actual costs at operating points."""
    wanted = counts.thresholds.new_tensor([point.bayes_threshold for point in points])
    places = torch.searchsorted(counts.thresholds, wanted).clamp(max=len(counts.thresholds) - 1)
    few = counts.at(torch.cat([turning_points(counts), places]).unique())  # type: ignore[no-untyped-call]

    def statistic(drawn: Resample) -> Tensor:
        errors = drawn.errors(few)
        costs = [cost_at(errors, point, point.bayes_threshold).normalized for point in points]
        return torch.stack([equal_error_of(errors, "rocch").rate, area_under_roc(errors), *costs])

    return statistic


def _cllr_statistic(trials: Trials) -> Statistic:
    """Return a function that computes Cllr."""
    scores, labels = trials
    targets, nontargets = softplus(-scores[labels].sort().values), softplus(scores[~labels].sort().values)

    def statistic(drawn: Resample) -> Tensor:
        return mean_cost_of(_mean(targets, drawn.targets), _mean(nontargets, drawn.nontargets)).unsqueeze(0)

    return statistic


def _mean(costs: Tensor, counts: Tensor) -> Tensor:
    return torch.where(counts > 0, costs * counts, 0.0).sum() / len(costs)  # a count of 0 would not cancel an infinity
