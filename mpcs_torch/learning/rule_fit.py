"""The samples to fit a decision rule with, and the choice of the thresholds that guarantee its limits."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.scaling import not_finite
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.concern.limits import LimitedRate, UnattainableLimitError
from mpcs_torch.functional.concern.threshold_testing import RiskPath, ends_of_steps, first_step, last_step
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.learning.rule_limit import CLUSTER, Limit

CALIBRATION_SHARE = 0.2
MAX_STEPS = 500
"""The maximum number of thresholds to test in sequence, if the calibration samples fix the sequence."""


class FitSamples(NamedTuple):
    """N samples to fit J limits on the CPU, each with K candidate decisions (answers)."""

    target: Tensor
    """The true classes, (N,), int64."""
    answers: Tensor
    """The candidate decisions, cheapest first, int64 (N, K): classes, or C and above for sets of classes."""
    risk: Tensor
    """The estimated loss under each limit, float64 (N, K, J): at most 1, or infinite if a referral costs less."""
    groups: Mapping[str, Groups]
    """The groups of the samples, by the name of the column."""
    clusters: Tensor | None
    """The cluster of each sample, (N,), int64 codes; None if samples are independent."""
    weights: Tensor | None = None
    """The inverse sampling probability of each sample, float64 (N,); None if all samples of each cluster were kept."""


def needs_path(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether samples other than those of the tests must fix the path: the sequence of thresholds to test."""
    return len(limits) > 1 or _needs_steps(limits, concern)


def _needs_steps(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether an error rate may fall as thresholds rise; if so, the thresholds to test need separate samples."""
    is_budget = any(limit.is_budget for limit in limits)  # referrals only decrease, whichever answers are chosen
    return any(limit.is_of_decided for limit in limits) or (bool(concern.answers) and not is_budget)


def choose_thresholds(
    limits: Sequence[Limit], concern: ConcernSpec, samples: FitSamples, calibration_rows: Tensor, threshold_rows: Tensor
) -> Tensor:
    """Return the thresholds (J,), one per limit, with which as many samples are decided as the limits allow.

    An answer is allowed if, for each limit, its estimated loss divided by the highest loss is below the threshold. If
    `needs_path`, the samples ``calibration_rows`` fix a path (a sequence of threshold vectors). The samples
    ``threshold_rows`` choose a step of this path.
    """
    counted = torch.stack([limit.counted(samples.target, samples.answers, concern) for limit in limits], dim=2)
    all_rates, highest = _rates(limits, concern, samples, counted)
    path = None
    if needs_path(limits, concern):
        path = _path(limits, highest, samples.risk[calibration_rows, 0], counted[calibration_rows, 0])
    places = samples.risk[..., 0] if path is None else path.first_place(samples.risk)
    places = torch.where(samples.risk.isfinite().all(dim=2), places, torch.inf)
    fixes_steps = _needs_steps(limits, concern)
    step_rows, most = (calibration_rows, MAX_STEPS) if fixes_steps else (threshold_rows, None)
    ends = ends_of_steps(places[step_rows], rounding=1e-5, most=most)
    decided_at = torch.bucketize(places, ends, right=True)  # an answer with infinite risk is never allowed
    steps, clusters = len(ends), torch.arange(len(places)) if samples.clusters is None else samples.clusters
    if limits[0].is_budget:  # begin with all samples decided, except those without an allowed answer
        decided_at = steps - decided_at.amin(dim=1, keepdim=True)
    times = len(set(clusters[threshold_rows].tolist())) / len(set(clusters[calibration_rows].tolist()))
    calibration_rates, rates = [rate.at(calibration_rows) for rate in all_rates], list[LimitedRate]()
    for rate, on_calibration in zip(all_rates, calibration_rates, strict=True):
        _check_attainable(rate.at(threshold_rows), rate, is_split=len(threshold_rows) < len(samples.target))
        bets = on_calibration.bets_for(decided_at[calibration_rows], steps, times)
        rates.append(rate.at(threshold_rows)._replace(bets=bets))
    if limits[0].is_budget:
        return _within_budget(limits[0], rates, ends, decided_at[threshold_rows])
    first = 0
    if any(limit.is_of_decided for limit in limits):
        pilot = [each._replace(bets=rate.bets) for each, rate in zip(calibration_rates, rates, strict=True)]
        first = first_step(pilot, decided_at[calibration_rows], steps, times=times)
    last = last_step(rates, decided_at[threshold_rows], steps, first=first)
    end = 0.0 if last < 0 else float(ends[last])
    thresholds = torch.tensor([end]) if path is None or end in (0, torch.inf) else path.thresholds_at(end)
    return thresholds.expand(len(limits))


def _within_budget(limit: Limit, rates: list[LimitedRate], ends: Tensor, referred_at: Tensor) -> Tensor:
    steps = len(ends)
    last = last_step(rates, referred_at, steps)
    if last < 0:
        raise ValueError(
            f"the limit '{limit}' cannot be met: for too many samples, a referral costs less than a decision. "
            "Raise the limit, or the cost of a referral (refer) in the concern."
        )
    return ends[[steps - 1 - last]]


def _rates(
    limits: Sequence[Limit], concern: ConcernSpec, samples: FitSamples, counted: Tensor
) -> tuple[list[LimitedRate], list[float]]:
    """Return the rates to test, one per limit (if it has ``by``, one per group), and the highest loss of each limit."""
    rates, highest_losses = list[LimitedRate](), list[float]()
    for limit, is_counted in zip(limits, counted.unbind(dim=2), strict=True):
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
                    is_counted[:, : answers.shape[1]] & (codes == code)[:, None],
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
    path_risk = torch.where(counted | ~torch.tensor(of_decided), risk, torch.inf)
    return RiskPath(path_risk, torch.tensor(used_at, dtype=torch.float64), of_decided)


def _check_attainable(rate: LimitedRate, all_rows: LimitedRate, *, is_split: bool) -> None:
    """Raise an error if samples are too few; the number needed includes calibration samples if ``is_split``."""
    try:
        rate.check_attainable(all_rows)
    except UnattainableLimitError as error:
        name, limit, units, lowest, needed, *words = error.args
        needed = total_units(needed) if is_split else needed
        raise UnattainableLimitError(name, limit, units, lowest, needed, *words) from None


def checked_logits(preds: Tensor, target: Tensor, num_classes: int, *, calibrates: bool) -> tuple[Tensor, Tensor]:
    """Validate and return logits (N, C), finite if ``calibrates``, and labels (N,); 16-bit logits become float32."""
    require(preds.ndim == 2, "preds must have shape (N, C)", tuple(preds.shape))
    samples = flatten_samples(preds, target, num_classes=num_classes, scale="logits")
    raise_first([*samples.find_faults(), *([not_finite(samples.scores)] if calibrates else [])])
    if not len(preds):
        raise ValueError("preds must have at least one sample, but is empty.")
    return samples.wide(), samples.labels.target


def class_frequencies(target: Tensor, class_names: Sequence[str]) -> Tensor:
    """Return the class frequencies (C,) of labels (N,); raise a ValueError if a class has no samples."""
    counts = target.bincount(minlength=len(class_names))
    absent = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if absent:
        raise ValueError(f"target must contain every class to correct for priors, but has no {', '.join(absent)}.")
    return counts / len(target)


def calibration_units(total: int) -> int:
    """Return how many of ``total`` samples or clusters are used to fit the calibration of a rule with limits."""
    return max(1, round(CALIBRATION_SHARE * total))


def draw_calibration_units(total: int, seed: int) -> Tensor:
    """Draw samples or clusters at random to fit the calibration with; return a bool mask (total,)."""
    is_calibration = torch.zeros(total, dtype=torch.bool)
    order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
    is_calibration[order[: calibration_units(total)]] = True
    return is_calibration


def total_units(judging: int) -> int:
    """Return how many samples or clusters to collect so that ``judging`` of them remain to choose the thresholds."""
    total = max(judging, int(judging / (1 - CALIBRATION_SHARE)) - 3)
    while total - calibration_units(total) < judging:
        total += 1
    return total
