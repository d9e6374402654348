"""Bootstrap intervals of the metrics of detection scores."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mpcs_torch.functional.comparison.bootstrap import unless_all_agree
from mpcs_torch.functional.detection.bootstrap import TrialDraws, interval_of_resamples, turning_points
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorCounts
from mpcs_torch.functional.detection.llr_cost import mean_cost_of, softplus
from mpcs_torch.processes.world import World
from mpcs_torch.scoring.shares import around_equal_rates, errors_of_all, places_of
from mpcs_torch.scoring.trials import Trials

Statistic = Callable[[TrialDraws], Tensor]
EQUAL_ERROR, AREA, H_MEASURE, CLLR = "equal error rate", "area under the ROC", "H-measure", "Cllr"
INTERPOLATED = f"{EQUAL_ERROR} (interpolated)"


def bootstrap_intervals(
    trials: Trials,
    own: ErrorCounts,
    *,
    is_llr: bool,
    resamples: int,
    confidence: float,
    advance: Callable[[int], None],
    world: World,
) -> dict[str, tuple[float, float]]:
    """Compute the intervals of the metrics that have one, by name, from the trials of this process and their errors.

    That of the equal error rate is of the rate on straight lines between the points of the curve: the convex hull of a
    resample lies below the curve of the population.
    """
    places = places_of([int(own.targets), int(own.nontargets)], world)
    statistics, names = [_curve_statistic(own, world)], [EQUAL_ERROR, AREA]
    if is_llr:
        statistics.append(_cllr_statistic(trials, [number for _, number in places], world))
        names.append(CLLR)
    low, high = interval_of_resamples(
        lambda drawn: torch.cat([statistic(drawn) for statistic in statistics]),
        places,
        trials.scores.device,
        resamples=resamples,
        confidence=confidence,
        advance=lambda: advance(1),
    )
    ends = map(unless_all_agree, low.tolist(), high.tolist())
    return {name: interval for name, interval in zip(names, ends, strict=True) if interval is not None}


def _curve_statistic(own: ErrorCounts, world: World) -> Statistic:
    """Return a function that computes equal error rate and area."""
    few = own.at(turning_points(own))

    def statistic(drawn: TrialDraws) -> Tensor:
        errors, area = errors_of_all(drawn.errors(few), world, around_equal_rates)
        return torch.stack([equal_error_of(errors, "interpolated").rate, area])

    return statistic


def _cllr_statistic(trials: Trials, numbers: Sequence[int], world: World) -> Statistic:
    """Return a function that computes Cllr."""
    scores, labels = trials
    targets, nontargets = softplus(-scores[labels].sort().values), softplus(scores[~labels].sort().values)

    def statistic(drawn: TrialDraws) -> Tensor:
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
