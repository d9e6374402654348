"""The samples to fit a decision rule with, and the choice of the thresholds that guarantee its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.scaling import not_finite
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.checks import check_by_class
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.learning.limited_rate import LimitedRate, UnattainableLimitError
from mpcs_torch.learning.rule_limit import CLUSTER, Limit
from mpcs_torch.learning.threshold_testing import RiskPath, ends_of_steps, first_step, last_step

CALIBRATION_SHARE = 0.2
MAX_STEPS = 500
"""The maximum number of thresholds to test in sequence, if the calibration samples fix the sequence."""


class FitSamples(NamedTuple):
    """M samples to fit a rule with; those of successive positions, such as pixels, are of one sample (image)."""

    preds: Tensor
    """The logits, (M, C)."""
    target: Tensor
    """The true classes, (M,), int64."""
    groups: Mapping[str, Groups]
    """The groups of the samples, by the name of the column."""
    clusters: Tensor | None
    """The cluster of each sample, (M,), int64 codes; None if samples are independent."""
    weights: Tensor | None
    """The inverse sampling probability of each sample, float64 (M,); None if all samples of each cluster were kept."""
    costs: Tensor | None
    """The costs of the samples: (M, C), or (M, C, C) by true class; None if they are those of the concern."""
    positions: int
    """The number of positions of each sample."""


class FitCandidates(NamedTuple):
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
    return bool(concern.answers) or any(limit.is_of_decided for limit in limits)


def choose_thresholds(
    limits: Sequence[Limit],
    concern: ConcernSpec,
    samples: FitCandidates,
    calibration_rows: Tensor,
    threshold_rows: Tensor,
) -> Tensor:
    """Return the thresholds (J,), one per limit, with which as many samples are decided as the limits allow.

    An answer is allowed if, for each limit, its estimated loss divided by the highest loss is below the threshold. If
    `needs_path`, the samples ``calibration_rows`` fix a path (a sequence of threshold vectors). The samples
    ``threshold_rows`` choose a step of this path.
    """
    counted = torch.stack([limit.counted(samples.target, samples.answers, concern) for limit in limits], dim=2)
    highest = [float(limit.losses(concern).max()) for limit in limits]
    path, places = None, samples.risk[..., 0]
    if needs_path(limits, concern):
        path = _path(limits, highest, samples.risk[calibration_rows, 0], counted[calibration_rows, 0])
        places = path.first_place(samples.risk)
    places = torch.where(samples.risk.isfinite().all(dim=2), places, torch.inf)
    if _needs_steps(limits, concern):
        ends = ends_of_steps(places[calibration_rows], rounding=1e-5, most=MAX_STEPS)
    else:
        ends = ends_of_steps(places[threshold_rows], rounding=1e-5)
    steps, decided_at = len(ends), torch.bucketize(places, ends, right=True)  # infinite places are behind all steps
    times = _units(samples, threshold_rows) / _units(samples, calibration_rows)
    pilots, rates = list[LimitedRate](), list[LimitedRate]()
    for rate in _rates(limits, highest, concern, samples, counted):
        pilot, tested = rate.at(calibration_rows), rate.at(threshold_rows)
        _check_attainable(tested, rate, is_split=len(threshold_rows) < len(samples.target))
        bets = pilot.bets_for(decided_at[calibration_rows], steps, times)
        pilots.append(pilot._replace(bets=bets))
        rates.append(tested._replace(bets=bets))
    first = 0
    if any(limit.is_of_decided for limit in limits):
        first = first_step(pilots, decided_at[calibration_rows], steps, times=times)
    last = last_step(rates, decided_at[threshold_rows], steps, first=first)
    end = 0.0 if last < 0 else float(ends[last])
    if path is None or end in (0, torch.inf):
        return torch.tensor([end]).expand(len(limits))
    return path.thresholds_at(end)


def _units(samples: FitCandidates, rows: Tensor) -> int:
    """Return the number of clusters among the samples ``rows``, or without clusters, of samples."""
    return len(rows) if samples.clusters is None else len(set(samples.clusters[rows].tolist()))


def _rates(
    limits: Sequence[Limit], highest: Sequence[float], concern: ConcernSpec, samples: FitCandidates, counted: Tensor
) -> list[LimitedRate]:
    """Return the rates to test, one per limit, or per group of its ``by``; losses are divided by the highest."""
    rates = []
    for number, limit in enumerate(limits):
        names, codes = ["all"], torch.zeros_like(samples.target)
        if limit.by is not None:
            names, codes = samples.groups[limit.by]
        for code, name in enumerate(names):
            group = "" if limit.by is None else f", {limit.by} {name}"
            rate = LimitedRate(
                f"the limit '{limit}'{group}",
                limit.at_most / highest[number],
                limit.confidence,
                limit.losses(concern)[samples.target.unsqueeze(1), samples.answers] / highest[number],
                counted[..., number] & (codes == code).unsqueeze(1),
                limit.is_of_decided,
                samples.clusters,
                unit=limit.unit if samples.clusters is None else f"clusters with {limit.unit}",
                scale=highest[number],
                per_cluster=limit.per == CLUSTER,
                weights=samples.weights,
            )
            rates.append(rate.over_all())
    return rates


def _path(limits: Sequence[Limit], highest: Sequence[float], risk: Tensor, counted: Tensor) -> RiskPath:
    """Return the path for the risks (N, J) of the cheapest answers of samples, of which each limit counts some."""
    of_decided = [limit.is_of_decided for limit in limits]
    at_most = torch.tensor([limit.at_most for limit in limits], dtype=torch.float64)
    scaled = at_most / torch.tensor(highest, dtype=torch.float64)
    shares = counted.double().mean(dim=0).clamp(min=1e-9)
    used_at = torch.where(torch.tensor(of_decided), scaled, scaled * shares)
    path_risk = torch.where(counted | ~torch.tensor(of_decided), risk, torch.inf)
    return RiskPath(path_risk, used_at, of_decided)


def _check_attainable(rate: LimitedRate, all_rows: LimitedRate, *, is_split: bool) -> None:
    """Raise an error if samples are too few; the number needed includes calibration samples if ``is_split``."""
    try:
        rate.check_attainable(all_rows)
    except UnattainableLimitError as error:
        if not is_split:
            raise
        raise replace(error, needed=total_units(error.needed)) from None


def checked_logits(preds: Tensor, target: Tensor, num_classes: int, *, calibrates: bool) -> tuple[Tensor, Tensor]:
    """Validate logits (N, C, ...), finite if ``calibrates``, and labels (N, ...), and flatten them to (M, C) and (M,).

    16-bit logits become float32.
    """
    check_by_class(preds)
    samples = flatten_samples(preds, target, num_classes=num_classes, scale="logits")
    raise_first(samples.find_faults())
    if calibrates:
        raise_first([not_finite(samples.scores)])
    require(len(preds), "not_empty", "preds", preds)
    return samples.wide(), samples.labels.target


def check_row_costs(costs: Tensor, target: Tensor) -> None:
    """Check that costs, (M, C) if wrong or (M, C, C) by true class, are finite, and do not tell the labels (M,)."""
    require(costs.isfinite().all(), "finite", "costs", costs[~costs.isfinite()][:1].tolist())
    if costs.ndim == 2:
        for label, of_class in enumerate((costs == 0).unbind(1)):
            is_true = target == label
            is_told = is_true.any() and (~is_true).any() and bool((of_class == is_true).all())
            require(not is_told, "known_before_class", "costs", label=label)


def class_frequencies(target: Tensor, class_names: Sequence[str]) -> Tensor:
    """Return the class frequencies (C,) of labels (N,); raise a ValueError if a class has no samples."""
    counts = target.bincount(minlength=len(class_names))
    absent = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if absent:
        raise InvalidValueError("every_class_for_priors", "target", absent=absent)
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
