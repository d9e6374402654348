"""Bootstrap intervals of the metrics of detection scores."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection.bootstrap import Resample, interval_of_resamples, turning_points
from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.detection.cost import cost_at
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorCounts
from mpcs_torch.functional.detection.llr_cost import mean_cost_of, softplus
from mpcs_torch.processes.world import World
from mpcs_torch.scoring.shares import errors_of_all, places_of
from mpcs_torch.scoring.trials import Trials

Statistic = Callable[[Resample], Tensor]
EQUAL_ERROR, AREA, CLLR = "equal error rate", "area under the ROC", "Cllr"


def actual_cost(point: OperatingPoint) -> str:
    """Return the name of the actual cost at an operating point."""
    return f"actual cost, {point.label()}"


def bootstrap_intervals(
    trials: Trials,
    own: ErrorCounts,
    points: Sequence[OperatingPoint],
    *,
    is_llr: bool,
    resamples: int,
    confidence: float,
    advance: Callable[[], None],
    world: World,
) -> dict[str, tuple[float, float]]:
    """Compute the intervals of the metrics that have one, by name, from the trials of this process and their errors.

    Minimum costs and the calibration loss have none: resamples repeat scores, which the best threshold overfits.
    """
    places = places_of([int(own.targets), int(own.nontargets)], world)
    statistics: list[Statistic] = [_curve_statistic(own, points if is_llr else [], world)]
    names = [EQUAL_ERROR, AREA]
    if is_llr:
        names += [*map(actual_cost, points), CLLR]
        statistics.append(_cllr_statistic(trials, [number for _, number in places], world))
    low, high = interval_of_resamples(
        lambda drawn: torch.cat([statistic(drawn) for statistic in statistics]),
        places,
        trials.scores.device,
        resamples=resamples,
        confidence=confidence,
        advance=advance,
    )
    return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _curve_statistic(own: ErrorCounts, points: Sequence[OperatingPoint], world: World) -> Statistic:
    """Return a function that computes equal error rate, area, and the actual costs at operating points."""
    wanted = own.thresholds.new_tensor([point.bayes_threshold for point in points])

    def looked_up(curve: ErrorCounts) -> Tensor:
        return torch.searchsorted(curve.thresholds, wanted).clamp(max=len(curve.thresholds) - 1)

    few = own.at(torch.cat([turning_points(own), looked_up(own)]).unique())  # type: ignore[no-untyped-call]

    def statistic(drawn: Resample) -> Tensor:
        errors, area = errors_of_all(
            drawn.errors(few), world, lambda curve: torch.cat([hull_vertices(curve), looked_up(curve)])
        )
        costs = [cost_at(errors, point, point.bayes_threshold).normalized for point in points]
        return torch.stack([equal_error_of(errors, "rocch").rate, area, *costs])

    return statistic


def _cllr_statistic(trials: Trials, numbers: Sequence[int], world: World) -> Statistic:
    """Return a function that computes Cllr."""
    scores, labels = trials
    targets, nontargets = softplus(-scores[labels].sort().values), softplus(scores[~labels].sort().values)

    def statistic(drawn: Resample) -> Tensor:
        repeated = _repeated(targets, drawn.targets), _repeated(nontargets, drawn.nontargets)
        return mean_cost(repeated, numbers, world).unsqueeze(0)

    return statistic


def _repeated(costs: Tensor, counts: Tensor) -> Tensor:
    return torch.where(counts > 0, costs * counts, 0.0)  # a count of 0 would not cancel an infinity


def mean_cost(costs: Sequence[Tensor], numbers: Sequence[int], world: World) -> Tensor:
    """Compute Cllr from the logarithmic costs of own targets and non-targets, and the numbers of those of all."""
    sums = torch.stack([own.sum() for own in costs])
    world.add_up([sums])
    return mean_cost_of(*(sums / sums.new_tensor(numbers)))
