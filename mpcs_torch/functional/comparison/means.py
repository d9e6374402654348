"""Means and their intervals, over independent samples or clusters of samples, also if only some have labels."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.comparison.confidence_intervals import (
    bounded_mean_end,
    bounded_mean_interval,
    clopper_pearson,
)
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.faults import Fault, outside, raise_first
from mpcs_torch.functional.inputs.groups import group_codes

CELLS = 128
"""The number of cells in which values are merged, because `bounded_mean_interval` is slow for many values."""
CELLS_OF_AUDIT = 2048
"""The number of cells for `audited_mean`, whose values have long tails."""
MAX_DISTINCT = 64
"""The approximate maximum number of distinct (sum, size) pairs of clusters; above it, close pairs are merged."""
MAX_REFUSED = 1e-4
"""The maximum probability with which `is_beyond_chance` is wrong."""
Interval = tuple[float, float]


class Mean(NamedTuple):
    """A mean over independent trials or over clusters of trials, stored as distinct values and their counts."""

    values: Tensor
    """(K,): values of trials, or sums over clusters; the last two are the smallest and the largest possible value."""
    counts: Tensor
    """(K,): the number of trials or clusters with each value; 0 for the last two."""
    per: Tensor
    """(K,): the number of trials behind each value: 1 for a trial, or the size of a cluster."""
    is_rate: bool
    """Whether trials are independent, and their values are only the smallest or the largest possible value."""

    @property
    def value(self) -> float:
        """The mean."""
        return ((self.values @ self.counts) / (self.per @ self.counts)).item()

    @property
    def possible(self) -> Interval:
        """The smallest and the largest possible mean."""
        lowest, highest = (self.values[-2:] / self.per[-2:]).tolist()
        return lowest, highest

    def interval(self, confidence: float) -> Interval:
        """Return the ends of the confidence interval of the mean, clipped to the range of possible values."""
        low = self.end(confidence, is_upper=False)
        high = self.end(confidence, is_upper=True)
        return low, high

    def end(self, confidence: float, *, is_upper: bool) -> float:
        """Return the upper end of the confidence interval if ``is_upper``, else the lower end."""
        low, high = self.possible
        if self.is_rate and high > low:
            trials = round(self.counts.sum().item())
            largest = round((self.value - low) / (high - low) * trials)
            ends = clopper_pearson(largest, trials, confidence=confidence)
            rate = ends[1] if is_upper else ends[0]
            return low + (high - low) * rate
        bound = bounded_mean_end(
            self.values, self.counts, per=self.per, confidence=confidence, is_upper=is_upper
        )
        return min(max(bound, low), high)


def error_mean(errors: int, trials: int, weight: float) -> Mean:
    """Return the mean over ``trials``, of which ``errors`` have the value ``weight`` and the others 0."""
    # The values that occur, then the smallest and the largest possible one, which are the same.
    values = torch.tensor([0.0, weight, 0.0, weight], dtype=torch.float64)
    counts = values.new_tensor([trials - errors, errors, 0, 0])
    return Mean(values, counts, torch.ones_like(values), is_rate=True)


def estimate_mean(values: Tensor, possible: Interval, clusters: Tensor | None) -> Mean:
    """Return the mean of ``values`` (n,) in the range ``possible``; ``clusters`` (n,) are their cluster numbers."""
    if clusters is None:
        return _mean_of_trials(values, possible)
    sizes = clusters.bincount().double()
    occurs = sizes > 0
    sums = clusters.bincount(values)[occurs]
    sizes = sizes[occurs]
    largest = sizes.max().item()
    lowest, highest = possible
    ends = [(largest * lowest, largest), (largest * highest, largest)]
    return mean_of_clusters(sums, sizes, ends)


def mean_of_clusters(
    sums: Tensor, per: Tensor, ends: Sequence[tuple[float, float]]
) -> Mean:
    """Return the mean from the sum of values and the size ``per`` of each of n clusters.

    ``ends`` are pairs (sum, size): of a cluster with the smallest possible mean, and of one with the largest.
    """
    pairs, counts = distinct_pairs(torch.stack([sums, per], dim=1), torch.ones_like(sums))
    values, per = torch.cat([pairs, pairs.new_tensor(ends)]).unbind(1)
    counts = torch.cat([counts, counts.new_zeros(2)])  # the ends need not occur
    return Mean(values, counts, per, is_rate=False)


def _mean_of_trials(values: Tensor, possible: Interval, cells: int = CELLS) -> Mean:
    """Return the mean of ``values`` (n,), each replaced by the mean of its cell; the cells divide the range."""
    low, high = possible
    scale = cells / (high - low) if high > low else 0.0
    cell = ((values - low) * scale).round().long()
    counts = cell.bincount().double()
    sums = cell.bincount(values)
    occurs = counts > 0
    distinct = torch.cat([sums[occurs] / counts[occurs], values.new_tensor(possible)])
    counts = torch.cat([counts[occurs], counts.new_zeros(2)])  # the ends need not occur
    is_rate = bool(((values == low) | (values == high)).all())
    return Mean(distinct, counts, torch.ones_like(distinct), is_rate)


def distinct_pairs(pairs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Merge equal ``pairs`` (P, 2) of numerator and denominator, then close ones, until about 64 remain.

    Return the remaining pairs and, for each, the sum of the ``counts`` (P,) of the pairs merged into it.
    """
    numerators, denominators = pairs.unbind(1)
    if bool((denominators == denominators[0]).all()):
        numerators, index = numerators.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        distinct = torch.stack([numerators, denominators[0].expand_as(numerators)], dim=1)
    else:
        # NumPy orders complex numbers as torch orders pairs, five times faster.
        as_complex = torch.view_as_complex(pairs.contiguous()).numpy()
        values, places = np.unique(as_complex, return_inverse=True)
        distinct = torch.view_as_real(torch.from_numpy(values))
        index = torch.from_numpy(places)
    counted = index.bincount(counts)
    if len(distinct) <= MAX_DISTINCT:
        return distinct, counted
    codes = _codes_of_close_pairs(distinct, counted)
    numerators, denominators = distinct.unbind(1)
    merged = codes.bincount(counted)
    summed = torch.stack(
        [codes.bincount(numerators * counted), codes.bincount(denominators * counted)],
        dim=1,
    )
    return summed / merged.unsqueeze(1), merged


def _codes_of_close_pairs(pairs: Tensor, counts: Tensor) -> Tensor:
    """Return a code for each of ``pairs`` (P, 2), which occur ``counts`` (P,) times: close pairs have the same, (P,).

    Pairs are close if their ranks and their values are. The extremes have the most influence: so the ranks at both ends
    are divided most finely, and outliers are not merged with other pairs.
    """
    numerators, denominators = pairs.unbind(1)
    total = (pairs * counts.unsqueeze(1)).sum(0)
    # How far each numerator is from the one that the ratio of all would give.
    rest = numerators - total[0] / total[1] * denominators
    order = rest.argsort()
    # The arc tangent of -1 to 1 is -pi / 4 to pi / 4, so there are about MAX_DISTINCT / 2 steps of ranks.
    from_ends = torch.linspace(-1, 1, len(order), dtype=torch.float64).atan()
    ranks = (from_ends * MAX_DISTINCT / 3.2).round()
    middle = (rest.max() + rest.min()) / 2
    half = (rest.max() - rest.min()) / 2
    # Rounding to the nearest cell from the middle gives the same cells for -rest. There are MAX_DISTINCT / 2 + 1.
    cells = ((rest[order] - middle) * (MAX_DISTINCT / 4) / half).round()
    # Cells are below MAX_DISTINCT, so each pair of a rank and a cell has a number of its own.
    _, codes_in_order = (ranks * MAX_DISTINCT + cells).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    codes = torch.empty_like(order)
    codes[order] = codes_in_order
    return codes


class AuditedMean(NamedTuple):
    """A mean loss and its confidence interval, estimated from the labels of a random subset of samples."""

    value: float
    low: float
    """The lower end of the interval."""
    high: float


def is_beyond_chance(deviation: float, variance: float, largest: float) -> bool:
    """Return whether ``deviation``, a sum of independent terms with mean 0, is too far from 0 to be chance.

    ``variance`` is that of the sum, and ``largest`` the highest absolute value of a term.

    References:
        Bernstein's inequality, as in Boucheron, Lugosi, Massart: Concentration Inequalities, 2013, Corollary 2.11.
    """
    rarity = log(2 / MAX_REFUSED)
    offset = largest * rarity / 3
    return bool(abs(deviation) > offset + (offset**2 + 2 * variance * rarity) ** 0.5)


def audited_mean(
    loss: Tensor,
    predicted: Tensor,
    chance: Tensor,
    *,
    clusters: Sequence[object] | Tensor | None = None,
    confidence: float = CONFIDENCE,
) -> AuditedMean:
    r"""Estimate the mean loss of all samples from predictions for all samples and labels of a random subset.

    .. math:: \frac{1}{N} \sum_i \frac{l_i}{a_i} x_i - \lambda f_i \left( \frac{l_i}{a_i} - 1 \right)

    Here :math:`l_i` is 1 if sample i is labelled, else 0, and :math:`\lambda` minimizes the variance. The estimate is
    unbiased for any predictions; better predictions give a shorter interval. The interval, by `bounded_mean_interval`,
    allows for errors among unlabelled samples, so it is wide if few of the seemingly easy samples are labelled. It is
    valid if samples or clusters are independent, and the data are evaluated only once. For repeated evaluations as
    labels arrive, use `mpcs_torch.monitoring.RiskMonitor`.

    Samples must be chosen for labelling at random, with the probabilities ``chance``. Labels from complaints must be
    left out, because only errors cause complaints.

    Args:
        loss: x, ``(N,)``, from 0 to 1: an error (0 or 1), or a cost divided by the highest cost. NaN without a label.
        predicted: f, ``(N,)``, from 0 to 1: predicted losses, e.g. the estimated risk of a `DecisionRule`.
        chance: a, ``(N,)``: the probability that each sample was selected for labelling, in (0, 1].
        clusters: ``(N,)`` the name of each sample's cluster. Samples whose errors or selection depend on each other,
            such as those of one patient, must be in one cluster. Default: all samples are independent.
        confidence: The probability that the interval contains the mean.

    Raises:
        ValueError: If an argument breaks its rule, or if there are implausibly many or few labels for ``chance``,
            overall or among samples with a high predicted loss.

    References:
        Angelopoulos, Duchi, Zrnic: PPI++: Efficient Prediction-Powered Inference, arXiv 2311.01453, 2023, Eq. 4.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> risk = torch.rand(20_000, generator=generator) ** 4
        >>> wrong = (torch.rand(20_000, generator=generator) < risk).double()
        >>> labelled = torch.rand(20_000, generator=generator) < 0.1
        >>> audit = audited_mean(wrong.where(labelled, torch.nan), risk, torch.full((20_000,), 0.1))
        >>> print(f"{wrong.mean():.3f}: {audit.value:.3f} [{audit.low:.3f}, {audit.high:.3f}]")
        0.198: 0.192 [0.178, 0.205]
    """
    loss = torch.as_tensor(loss).double().cpu()
    predicted = torch.as_tensor(predicted).double().cpu()
    chance = torch.as_tensor(chance).double().cpu()
    _check_audit(loss, predicted, chance)
    codes = torch.arange(len(loss))  # each sample is a cluster of its own
    if clusters is not None:
        codes = group_codes("clusters", clusters, len(loss)).codes
    known = ~loss.isnan()
    _check_choice("labels", known, chance, torch.ones_like(chance), codes)
    _check_choice("labels of a high predicted loss", known, chance, predicted, codes)
    weight = torch.where(known, 1 / chance, 0.0)
    weighted = weight * loss.nan_to_num(0.0)
    control = predicted * (weight - 1)
    # The share of the control that is subtracted, lambda in the equation: that of a linear regression.
    spread = control - control.mean()
    share = torch.zeros((), dtype=torch.float64)
    if spread.any():
        share = ((spread @ weighted) / (spread @ spread)).clamp(0, 1)
    rows = weighted - share * control
    # The highest value is that of a labelled wrong sample that was predicted to be right, and the lowest that of a
    # labelled right one with the highest predicted loss; such samples may have the lowest chance.
    lowest = (share * predicted.max()).neg() * (1 / chance - 1).max()
    highest = (1 / chance).max()
    if clusters is None:
        possible = (lowest.item(), highest.item())
        mean = _mean_of_trials(rows, possible, CELLS_OF_AUDIT)
    else:
        sizes = codes.bincount()
        extremes = torch.stack([lowest, highest]) * sizes.max()
        mean = Mean(
            values=torch.cat([codes.bincount(rows), extremes]),
            counts=torch.cat([torch.ones_like(sizes), sizes.new_zeros(2)]),
            per=torch.cat([sizes, sizes.max().repeat(2)]),
            is_rate=False,
        )
    low, high = bounded_mean_interval(
        mean.values, mean.counts, per=mean.per, confidence=confidence
    )
    return AuditedMean(rows.mean().item(), low, high)


def _check_audit(loss: Tensor, predicted: Tensor, chance: Tensor) -> None:
    """Check the shapes and the values of the arguments of `audited_mean`."""
    shapes = [tuple(values.shape) for values in (loss, predicted, chance)]
    is_alike = loss.shape == predicted.shape == chance.shape
    require(
        is_alike and loss.ndim == 1 and len(loss) > 0,
        "same_shape",
        "loss, predicted and chance",
        shapes,
        shape="(N,), N at least 1",
    )
    known = ~loss.isnan()
    limits = {"minimum": 0, "maximum": 1}
    bad_loss = known & outside(loss, 0, 1)
    lacks_label = ~known & ~(chance < 1)
    bad_predicted = outside(predicted, 0, 1)
    bad_chance = outside(chance, 0, 1) | (chance == 0)
    raise_first(
        [
            Fault(Rule("loss_or_unknown", "loss"), loss, bad_loss),
            Fault(Rule("known_if_certain", "loss"), loss, lacks_label),
            Fault(Rule("between", "predicted", **limits), predicted, bad_predicted),
            Fault(Rule("above_at_most", "chance", **limits), chance, bad_chance),
        ]
    )


def _check_choice(
    name: str, known: Tensor, chance: Tensor, weight: Tensor, codes: Tensor
) -> None:
    """Check that labels are as many as their chances say, up to chance, if each sample counts with its ``weight``.

    ``codes`` are the numbers of clusters; all arguments but the name are (N,).
    """
    # The surplus of a cluster is its number of labels minus the expected one.
    surplus = codes.bincount((known.double() - chance) * weight)
    deviation = surplus.sum().item()
    variance = surplus.square().sum().item()
    if is_beyond_chance(deviation, variance, surplus.abs().max().item()):
        raise InvalidValueError(
            "whatever_the_error",
            "chance",
            excess="many" if deviation > 0 else "few",
            what=name,
            known=int(known.sum()),
            expected=chance.sum().item(),
        )
