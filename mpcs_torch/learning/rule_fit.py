"""Decide which samples calibrate a decision rule and which test its limits, and which thresholds keep the limits."""

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
from mpcs_torch.functional.inputs.groups import Groups, valid_values
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.learning.guaranteed_limits import LimitedRate, UnattainableLimitError
from mpcs_torch.learning.rule_limit import PER_CLUSTER, Limit
from mpcs_torch.learning.threshold_testing import (
    RiskPath,
    ends_of_steps,
    first_step,
    last_step,
)

CALIBRATION_SHARE = 0.2
MAX_STEPS = 500
"""The maximum number of thresholds to test in sequence, if the calibration samples fix the sequence."""


class FitSamples(NamedTuple):
    """M samples to fit a rule with; those of successive positions, such as pixels, are of one sample (image).

    All but the logits and the costs are those of the K samples with a label.
    """

    preds: Tensor
    """The logits, (M, C)."""
    labelled: Tensor
    """The indices of the samples with a label, (K,), int64."""
    target: Tensor
    """The true classes, (K,), int64."""
    groups: Mapping[str, Groups]
    """The groups of the samples, by the name of the column."""
    clusters: Tensor | None
    """The cluster of each sample, (K,), int64 codes; None if samples are independent."""
    weights: Tensor | None
    """The inverse sampling probability of each sample, float64 (K,); None if all samples of each cluster were kept."""
    costs: Tensor | None
    """The costs of the samples by true class, (M, C, C); None if they are those of the concern."""
    positions: int
    """The number of positions of each sample."""


def needs_path(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether samples other than those of the tests must fix the path: the sequence of thresholds to test."""
    return len(limits) > 1 or _needs_steps(limits, concern)


def _needs_steps(limits: Sequence[Limit], concern: ConcernSpec) -> bool:
    """Return whether an error rate may fall as thresholds rise; if so, the thresholds to test need separate samples."""
    return bool(concern.answers) or any(limit.is_of_decided for limit in limits)


def choose_thresholds(
    limits: Sequence[Limit],
    concern: ConcernSpec,
    samples: FitSamples,
    answers: Tensor,
    risk: Tensor,
    calibration_rows: Tensor,
    threshold_rows: Tensor,
) -> Tensor:
    """Return the thresholds (J,), one per limit, with which as many samples are decided as the limits allow.

    ``answers`` (N, A), int64, are the candidate decisions of the samples, cheapest first: classes, or C and above for
    sets of classes. ``risk`` (N, A, J), float64, is their estimated loss under each limit: at most 1, or infinite if a
    referral costs less. All tensors are on the CPU.

    An answer is allowed if, for each limit, its estimated loss divided by the highest loss is below the threshold. If
    `needs_path`, the samples ``calibration_rows`` fix a path (a sequence of threshold vectors). The samples
    ``threshold_rows`` choose a step of this path.
    """
    counted = torch.stack(
        [limit.counted(samples.target, answers, concern) for limit in limits], dim=2
    )
    highest = [float(limit.losses(concern).max()) for limit in limits]
    path = None
    # Without a path, there is one limit, whose risk orders the samples.
    places = risk[..., 0]
    if needs_path(limits, concern):
        cheapest_risk = risk[calibration_rows, 0]
        path = _path(limits, highest, cheapest_risk, counted[calibration_rows, 0])
        places = path.first_place(risk)
    places = torch.where(risk.isfinite().all(dim=2), places, torch.inf)
    if _needs_steps(limits, concern):
        ends = ends_of_steps(places[calibration_rows], rounding=1e-5, most=MAX_STEPS)
    else:
        ends = ends_of_steps(places[threshold_rows], rounding=1e-5)
    steps = len(ends)
    decided_at = torch.bucketize(places, ends, right=True)  # for infinity, after all steps
    times = _units(samples, threshold_rows) / _units(samples, calibration_rows)
    pilots, rates = list[LimitedRate](), list[LimitedRate]()
    for rate in _rates(limits, highest, concern, samples, answers, counted):
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


def _units(samples: FitSamples, rows: Tensor) -> int:
    """Return the number of clusters among the samples ``rows``, or without clusters, of samples."""
    if samples.clusters is None:
        return len(rows)
    return len(set(samples.clusters[rows].tolist()))


def _rates(
    limits: Sequence[Limit],
    highest: Sequence[float],
    concern: ConcernSpec,
    samples: FitSamples,
    answers: Tensor,
    counted: Tensor,
) -> list[LimitedRate]:
    """Return the rates to test, one per limit, or per group of its ``by``; losses are divided by the highest."""
    rates = []
    for number, limit in enumerate(limits):
        names, codes = ["all"], torch.zeros_like(samples.target)
        if limit.by is not None:
            names, codes = samples.groups[limit.by]
        for code, name in enumerate(names):
            group = "" if limit.by is None else f", {limit.by} {name}"
            unit = limit.unit
            if samples.clusters is not None:
                unit = f"clusters with {limit.unit}"
            loss = limit.losses(concern)[samples.target.unsqueeze(1), answers]
            rate = LimitedRate(
                f"the limit '{limit}'{group}",
                limit.at_most / highest[number],
                limit.confidence,
                loss / highest[number],
                counted[..., number] & (codes == code).unsqueeze(1),
                limit.is_of_decided,
                samples.clusters,
                unit=unit,
                scale=highest[number],
                per_cluster=limit.per == PER_CLUSTER,
                weights=samples.weights,
            )
            rates.append(rate.over_all())
    return rates


def _path(
    limits: Sequence[Limit], highest: Sequence[float], risk: Tensor, counted: Tensor
) -> RiskPath:
    """Return the path for the risks (N, J) of the cheapest answers of samples, of which each limit counts some."""
    of_decided = [limit.is_of_decided for limit in limits]
    is_of_decided = torch.tensor(of_decided)
    at_most = torch.tensor([limit.at_most for limit in limits], dtype=torch.float64)
    scaled = at_most / torch.tensor(highest, dtype=torch.float64)
    shares = counted.double().mean(dim=0).clamp(min=1e-9)
    used_at = torch.where(is_of_decided, scaled, scaled * shares)
    path_risk = torch.where(counted | ~is_of_decided, risk, torch.inf)
    return RiskPath(path_risk, used_at, of_decided)


def _check_attainable(rate: LimitedRate, all_rows: LimitedRate, *, is_split: bool) -> None:
    """Raise an error if samples are too few; the number needed includes calibration samples if ``is_split``."""
    try:
        rate.check_attainable(all_rows)
    except UnattainableLimitError as error:
        if not is_split:
            raise
        raise replace(
            error,
            needed=total_units(error.needed),
            calibrating=all_rows.units - error.samples,
        ) from None


def checked_logits(
    preds: Tensor,
    target: Tensor,
    num_classes: int,
    ignore_index: int | None = None,
    *,
    calibrates: bool,
) -> tuple[Tensor, Labels]:
    """Validate logits (N, C, ...), finite if ``calibrates``, and labels (N, ...); return logits (M, C), and labels.

    16-bit logits become float32.
    """
    check_by_class(preds)
    samples = flatten_samples(preds, target, num_classes, "logits", ignore_index)
    raise_first(samples.find_faults())
    if calibrates:
        raise_first([not_finite(samples.scores)])
    require(len(preds), "not_empty", "preds", preds)
    return samples.wide(), samples.labels


def check_row_costs(costs: Tensor, target: Tensor) -> None:
    """Check that costs by true class, (M, C, C), are finite, and do not give away the labels (M,)."""
    valid_values("costs", costs)
    # (M, C): whether a decision costs nothing, whatever the class.
    is_free = (costs == 0).all(dim=1)
    for label in range(costs.shape[2]):
        is_true = target == label
        occurs = is_true.any() and (~is_true).any()
        gives_away = occurs and bool((is_free[:, label] == is_true).all())
        require(not gives_away, "known_before_class", "costs", label=label)


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


def split_rows(
    limits: Sequence[Limit],
    concern: ConcernSpec,
    samples: int,
    clusters: Tensor | None,
    seed: int,
    *,
    is_fitted: bool,
) -> tuple[Tensor, Tensor]:
    """Return the rows for the calibration and those for the thresholds; all rows for both if no split is needed.

    It is needed for limits if anything but their thresholds ``is_fitted`` to samples, or if samples fix a path.
    """
    rows = torch.arange(samples)
    if not limits:
        return rows, rows
    needs_split = is_fitted or clusters is not None or needs_path(limits, concern)
    if not needs_split:
        return rows, rows
    units = rows if clusters is None else clusters
    is_calibration = draw_calibration_units(int(units.max()) + 1, seed)[units]
    return rows[is_calibration], rows[~is_calibration]


def draw_calibration_units(total: int, seed: int) -> Tensor:
    """Draw samples or clusters at random to fit the calibration with; return a bool mask (total,)."""
    is_calibration = torch.zeros(total, dtype=torch.bool)
    order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
    is_calibration[order[: calibration_units(total)]] = True
    return is_calibration


def total_units(judging: int) -> int:
    """Return how many samples or clusters to collect so that ``judging`` of them remain to choose the thresholds."""
    # The search begins a little below the result.
    total = max(judging, int(judging / (1 - CALIBRATION_SHARE)) - 3)
    while total - calibration_units(total) < judging:
        total += 1
    return total
