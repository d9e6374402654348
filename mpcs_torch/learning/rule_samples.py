"""The samples that a decision rule is fitted to, and the thresholds that keep its limits on them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.fitting import not_finite
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.concern.limited_rate import LimitedRate, UnattainableLimitError
from mpcs_torch.functional.concern.risk_control import RiskPath, ends_of_steps, first_step, last_step
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.learning.rule_limit import CLUSTER, Limit

CALIBRATION_SHARE = 0.2
MAX_STEPS = 500
"""Of a path that is fixed by the samples that calibrate."""


class FitSamples(NamedTuple):
    """N samples with the K answers that a rule may give, on the CPU."""

    target: Tensor
    """(N,), int64."""
    answers: Tensor
    """(N, K), int64: classes, or C and above for coarse answers, the cheapest first."""
    risk: Tensor
    """(N, K, J), float64: the estimated loss of each limit, at most 1; infinite where a referral costs less."""
    groups: Mapping[str, Groups]
    """By column."""
    clusters: Tensor | None
    """(N,), int64 codes; None if samples are independent."""
    weights: Tensor | None = None
    """(N,), float64: 1 by the chance with which each sample of a cluster was kept; None if all were."""


def needs_path(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether other samples than those that judge must say how limits are used up."""
    return len(limits) > 1 or _needs_steps(limits, concern)


def _needs_steps(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether they must fix the steps, too: a rate may fall along the path."""
    is_budget = any(limit.is_budget for limit in limits)  # referrals become fewer whatever the answers are
    return any(limit.is_of_decided for limit in limits) or (bool(concern.answers) and not is_budget)


def choose_thresholds(
    limits: Sequence[Limit], concern: ConcernSpec, samples: FitSamples, calibrating: Tensor, judging: Tensor
) -> Tensor:
    """Choose the threshold of each limit: as many samples are decided as the tests of all limits allow.

    Thresholds (J,), float64, are of estimated losses divided by the highest one of the limit. The samples at the
    calibrating places fix the path, those at the judging places choose.

    Raises:
        UnattainableLimitError: If there are too few samples for a limit.
    """
    counted = torch.stack([limit.counted(samples.target, samples.answers, concern) for limit in limits], dim=2)
    of_all, highest = _rates(limits, concern, samples, counted)
    path = None
    if needs_path(limits, concern):
        path = _path(limits, highest, samples.risk[calibrating, 0], counted[calibrating, 0])
    places = samples.risk[..., 0] if path is None else path.place_of(samples.risk)
    places = torch.where(samples.risk.isfinite().all(dim=2), places, torch.inf)
    fixes_steps = _needs_steps(limits, concern)
    fixing, most = (calibrating, MAX_STEPS) if fixes_steps else (judging, None)
    ends = ends_of_steps(places[fixing], rounding=1e-5, most=most)  # equal but for rounding
    decided_at = torch.bucketize(places, ends, right=True)  # answers with an infinite place never
    steps, clusters = len(ends), torch.arange(len(places)) if samples.clusters is None else samples.clusters
    if limits[0].is_budget:  # on the path back from deciding all samples; those that are never decided at once
        decided_at = steps - decided_at.amin(dim=1, keepdim=True)
    times = len(set(clusters[judging].tolist())) / len(set(clusters[calibrating].tolist()))
    others, rates = [rate.at(calibrating) for rate in of_all], list[LimitedRate]()
    for rate, other in zip(of_all, others, strict=True):
        _check_attainable(rate.at(judging), rate, splits=len(judging) < len(samples.target))
        rates.append(rate.at(judging)._replace(bets=other.bets_for(decided_at[calibrating], steps, times)))
    if limits[0].is_budget:
        return _within_budget(limits[0], rates, ends, decided_at[judging])
    first = 0
    if any(limit.is_of_decided for limit in limits):
        foreseen = [other._replace(bets=rate.bets) for other, rate in zip(others, rates, strict=True)]
        first = first_step(foreseen, decided_at[calibrating], steps, times=times)
    last = last_step(rates, decided_at[judging], steps, first=first)
    end = 0.0 if last < 0 else float(ends[last])
    chosen = torch.tensor([end]) if path is None or end in (0, torch.inf) else path.thresholds_at(end)
    return chosen.expand(len(limits))


def _within_budget(limit: Limit, rates: list[LimitedRate], ends: Tensor, referred_at: Tensor) -> Tensor:
    """Choose the lowest threshold whose referrals keep their limit, on the path back from deciding all samples."""
    steps = len(ends)
    last = last_step(rates, referred_at, steps)
    if last < 0:
        raise ValueError(
            f"the limit '{limit}' cannot be kept: for too many samples, a referral costs less than a "
            "decision. Raise the limit, or the cost of a referral (refer) in the concern."
        )
    return ends[[steps - 1 - last]]


def _rates(
    limits: Sequence[Limit], concern: ConcernSpec, samples: FitSamples, counted: Tensor
) -> tuple[list[LimitedRate], list[float]]:
    """Return the rates that limits are on, of all samples or of each group of them, and the highest losses."""
    rates, highest_losses = list[LimitedRate](), list[float]()
    for limit, of in zip(limits, counted.unbind(dim=2), strict=True):
        losses, answers = limit.losses(concern), samples.answers
        if limit.is_budget:
            losses, answers = torch.ones_like(losses), answers[:, :1]
        highest = float(losses.max())
        highest_losses.append(highest)
        names, codes = (["all"], torch.zeros_like(samples.target)) if limit.by is None else samples.groups[limit.by]
        for code, name in enumerate(names):
            rates.append(
                LimitedRate(
                    f"the limit '{limit}'" + ("" if limit.by is None else f", {limit.by} {name}"),
                    limit.at_most / highest,
                    limit.confidence,
                    losses[samples.target[:, None], answers] / highest,
                    of[:, : answers.shape[1]] & (codes == code)[:, None],
                    limit.is_of_decided,
                    samples.clusters,
                    unit=limit.unit if samples.clusters is None else f"clusters with {limit.unit}",
                    scale=highest,
                    per_cluster=limit.per == CLUSTER,
                    weights=samples.weights,
                ).over_all()
            )
    return rates, highest_losses


def _path(limits: Sequence[Limit], highest_losses: Sequence[float], risk: Tensor, counted: Tensor) -> RiskPath:
    shares = counted.double().mean(dim=0).clamp(min=1e-9).tolist()
    used_at = [
        limit.at_most / highest * (1.0 if limit.is_of_decided else share)
        for limit, highest, share in zip(limits, highest_losses, shares, strict=True)
    ]
    of_decided = [limit.is_of_decided for limit in limits]
    kept = torch.where(counted | ~torch.tensor(of_decided), risk, torch.inf)
    return RiskPath(kept, torch.tensor(used_at, dtype=torch.float64), of_decided)


def _check_attainable(rate: LimitedRate, all_given: LimitedRate, *, splits: bool) -> None:
    """Refuse a limit that too few samples judge; the error counts the samples that calibrate, too."""
    try:
        rate.check_attainable(all_given)
    except UnattainableLimitError as error:
        name, limit, units, lowest, needed, *words = error.args
        needed = given_units(needed) if splits else needed
        raise UnattainableLimitError(name, limit, units, lowest, needed, *words) from None


def checked_logits(preds: Tensor, target: Tensor, num_classes: int, *, calibrates: bool) -> tuple[Tensor, Tensor]:
    """Check logits (N, C), which must be finite if they calibrate, and labels (N,), at least one; upcast half types."""
    require(preds.ndim == 2, "preds must have shape (N, C)", tuple(preds.shape))
    samples = flatten_samples(preds, target, num_classes=num_classes, scale="logits")
    raise_first([*samples.find_faults(), *([not_finite(samples.scores)] if calibrates else [])])
    if not len(preds):
        raise ValueError("preds must hold at least one sample, but is empty.")
    return samples.wide(), samples.labels.target


def class_frequencies(target: Tensor, class_names: Sequence[str]) -> Tensor:
    """Return the share of each class among labels (N,): (C,); refuse a class without samples."""
    counts = target.bincount(minlength=len(class_names))
    absent = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if absent:
        raise ValueError(f"target must hold every class to correct for priors, but has no {', '.join(absent)}.")
    return counts / len(target)


def calibration_units(given: int) -> int:
    """Return how many of the given samples or clusters fit the calibration if the others guarantee a limit."""
    return max(1, round(CALIBRATION_SHARE * given))


def calibrating(given: int, seed: int) -> Tensor:
    """Draw which of the given samples or clusters fit the calibration: (N,), bool."""
    chosen = torch.zeros(given, dtype=torch.bool)
    chosen[torch.randperm(given, generator=torch.Generator().manual_seed(seed))[: calibration_units(given)]] = True
    return chosen


def given_units(judging: int) -> int:
    """Return how many samples or clusters must be given so that a number of them is left to judge."""
    given = max(judging, int(judging / (1 - CALIBRATION_SHARE)) - 3)
    while given - calibration_units(given) < judging:
        given += 1
    return given
