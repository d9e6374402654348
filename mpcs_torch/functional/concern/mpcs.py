"""The Meta Pattern Concern Score (MPCS), by Eq. 4 to 9 and Algorithm 1 of arXiv:2209.06408v3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, isclose, log
from typing import Literal

import torch
from torch import Tensor

from mpcs_torch.error_sentences import MAX_CONCESSION, MIN_CONCESSION
from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.arrays import (
    ConcernLike,
    as_tensor,
    concern_weights,
    is_spec,
)
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_concern,
    check_num_classes,
    widened,
    widest_float,
)
from mpcs_torch.functional.inputs.decisions import highest_classes
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.labels import Term, WeightedSum
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.measure import ProbabilityMeasure, Ratios

CorrectConcern = Literal["sum", "count"]
LOWEST_LEVEL = 1e-7
"""The value that replaces 0 before a logarithm is taken."""
DEFAULT_K = 5
"""The default of k, from the published runs."""
DEFAULT_T = 200
"""The default of t, from the published runs: a confidence within 0.005 of certainty then costs nothing."""

MAX_INTERVALS = 2**29
"""The largest t: a float32 (24-bit significand) times a 29-bit integer is exact in float64 (53 bits)."""


def concession_intervals(concession: float) -> int:
    r"""Compute the largest t for which MPCS, with t intervals, does not punish a confidence that is c away from 0 or 1.

    With t intervals, the true class with confidence :math:`1 - c` costs nothing if :math:`t (1 - c) \ge t - 1`. A wrong
    class with confidence :math:`c` costs nothing if :math:`t c < 1`. Both are true for all t up to

    .. math:: t = \lceil 1 / c \rceil - 1

    Args:
        concession: c, from 2e-9 (which keeps t below its maximum of 2^29) to below 1/2.

    Raises:
        ValueError: If the concession is outside that range.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, abstract, Section II and Fig. 2. The paper gives
        no formula.

    Example:
        >>> concession_intervals(0.02)
        49
    """
    is_number = isinstance(concession, int | float) and not isinstance(concession, bool)
    is_valid = is_number and MIN_CONCESSION <= concession < MAX_CONCESSION
    bounds = {"minimum": MIN_CONCESSION, "maximum": MAX_CONCESSION}
    require(is_valid, "from_below", "concession", concession, **bounds)
    inverse = 1 / concession
    nearest = round(inverse)
    # 1 / float(1 / n) can differ from n in its last bit.
    is_whole = isclose(inverse, nearest, rel_tol=1e-14)
    steps = nearest if is_whole else ceil(inverse)
    return steps - 1


def pattern_settings(
    num_classes: int,
    concern: Tensor | ConcernLike | None,
    *,
    k: int | None,
    t: int | None,
    concession: float | None,
) -> tuple[int, int]:
    """Return k and t, with defaults for None. The default of t comes from ``concession``, else from ``concern``."""
    check_num_classes(num_classes)
    require(
        t is None or concession is None, "not_with", "concession", concession, other="t"
    )
    if t is None and concession is None and is_spec(concern):
        concession = concern.concession
    if k is None:
        k = min(DEFAULT_K, num_classes)
    if concession is not None:
        t = concession_intervals(concession)
    elif t is None:
        t = DEFAULT_T
    for name, value in (("k", k), ("t", t)):
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        require(is_whole, "whole", name, value)
    require(1 <= k <= num_classes, "rank", "k", k, classes=num_classes)
    require(t >= 2, "at_least", "t", t, minimum=2)  # scores divide by t - 1
    # Up to there, t times a confidence is exact.
    require(t <= MAX_INTERVALS, "at_most", "t", t, maximum=MAX_INTERVALS)
    return k, t


Reduction = Literal["mean", "sum", "none"]
ScoreAverage = Literal["micro", "none"]


def meta_pattern_concern_score(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    k: int | None = None,
    t: int | None = None,
    concession: float | None = None,
    concern: Tensor | ConcernLike | None = None,
    from_logits: bool = True,
    correct_concern: CorrectConcern = "sum",
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    average: ScoreAverage = "micro",
) -> Tensor:
    r"""Compute the Meta Pattern Concern Score (MPCS); in nats, lower is better, 0 is perfect.

    It punishes unsure and wrong confidences, more for confusions with a larger weight (concern).

    The pattern of a sample is its k most probable classes :math:`l_i` (the lower index in a tie). Each confidence
    :math:`c_i` lies in an interval :math:`b_i = \min(\lfloor t c_i \rfloor, t - 1)`. With true class :math:`y`:

    .. math::
        S = \sum_{i=1}^{k} -\log\frac{\max(P_i, 10^{-7})}{t - 1} \cdot \frac{D_i}{\sum_j D_j}, \qquad
        P_i = \begin{cases} b_i & l_i = y \\ t - 1 - b_i & l_i \ne y \end{cases}

    The concern :math:`D_i` of a wrong class is ``concern[y, l_i]``. That of the true class is the sum of the concerns
    of the wrong classes in the pattern. If the true class is not in the pattern, all concerns are 1. The product
    :math:`t c_i` is computed in float64, which is exact for float32 confidences.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``.
            16-bit types are upcast before the softmax.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        k: The number of most probable classes in a pattern, from 1 to C. Default: 5, or C if that is less.
        t: The number of intervals that [0, 1] is divided into, from 2 to 2^29. Default: 200 as in the published runs,
            unless ``concession`` is given.
        concession: The largest distance of a confidence from 0 or 1 that is not punished, below 1/2; it sets t by
            `concession_intervals`. The default t = 200 is a concession of just below 0.005. A value of 0.02 ranks the
            classifiers of the paper's Table I as the paper does.
        concern: A `ConcernSpec`, or ``(C, C)`` weights > 0 for mistaking the true class (row) for another (column); the
            diagonal is not read. A sparse COO tensor stores the weights other than 1. Default: 1 everywhere.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        correct_concern: The concern of the true class: the ``"sum"`` over the other classes in the pattern (Eq. 8),
            or the ``"count"`` of these classes, k - 1, as in the published runs.
        ignore_index: Label of samples to leave out.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one weighted score per sample (0 where ignored).
        average: ``"micro"`` for all samples together, or ``"none"`` for one value per true class, (C,).

    Returns:
        A float64 tensor (float32 on MPS): a scalar, (C,) with ``average="none"``, or the shape of ``target`` with
        ``reduction="none"``. The mean is NaN if no sample (of the class) has a weight above 0.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9 and Algorithm 1. Deviations: for
        k = 1 the true class has concern 1 (Algorithm 1 gives 0/0); each pair of classes can have its own weight.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
        >>> target = torch.tensor([0, 2])
        >>> meta_pattern_concern_score(probs, target, num_classes=3, t=20, from_logits=False)
        tensor(0.3145, dtype=torch.float64)
    """
    check_choice("reduction", reduction, Reduction)
    preds = as_tensor(preds, "preds")
    measure = MetaPatternConcernScore(
        num_classes,
        from_logits,
        ignore_index,
        k,
        t,
        concession,
        concern,
        correct_concern,
        average,
    )
    if reduction == "mean":
        return measure(preds, target, sample_weight)
    measure = measure.on_device_of(preds)
    rows = measure.rows(preds, target, sample_weight)
    raise_first(rows.find_faults())
    if reduction == "none":
        return rows.labels.weighted(rows.map(measure.term)).reshape(target.shape)
    sums: WeightedSum = measure.named(measure.sums(rows))
    return sums.total


@dataclass(eq=False)
class MetaPatternConcernScore(ProbabilityMeasure):
    """The measure of `meta_pattern_concern_score`."""

    k: int | None = None
    t: int | None = None
    concession: float | None = None
    concern: Tensor | ConcernLike | None = None
    correct_concern: CorrectConcern = "sum"
    average: ScoreAverage = "micro"
    weights: Tensor | None = field(init=False, repr=False)
    """(C, C), as in `weight_matrix`."""

    sums_settings = (
        "num_classes",
        "from_logits",
        "ignore_index",
        "k",
        "t",
        "weights",
        "correct_concern",
        "average",
    )
    interval_rule = "mean"

    def __post_init__(self) -> None:
        """Check the settings, and compute their defaults."""
        check_choice("correct_concern", self.correct_concern, CorrectConcern)
        check_choice("average", self.average, ScoreAverage)
        self.k, self.t = pattern_settings(
            self.num_classes, self.concern, k=self.k, t=self.t, concession=self.concession
        )
        self.weights = weight_matrix(self.concern, self.num_classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sums are scalars if ``average`` is ``"micro"``, else by class."""
        return () if self.average == "micro" else (self.num_classes,)

    def term(self, samples: Samples) -> Tensor:
        """Return the score of each sample, (M,): float64 (float32 on MPS), NaN for invalid logits."""
        assert self.k is not None
        assert self.t is not None
        # The score is piecewise constant, so it has no gradient.
        confidence, label = highest_classes(samples.probs().detach(), self.k)
        true = samples.labels.target.unsqueeze(1)
        is_wrong = label != true
        highest_level = self.t - 1
        # In float64, confidence times t is exact; in float32 it could round up to the next interval.
        interval = (widened(confidence) * self.t).floor()
        # P of Eq. 5; a confidence of 1 gives the interval t, so levels are limited to t - 1.
        level = torch.where(is_wrong, highest_level - interval, interval)
        level = level.clamp(LOWEST_LEVEL, highest_level)
        log_level = (level / highest_level).log()  # at most 0
        wrong = widened(is_wrong)
        wrong_logs = log_level * wrong
        true_log = (log_level - wrong_logs).sum(dim=1)
        has_true = self.k - wrong.sum(dim=1)  # 1 if the pattern has the true class, else 0
        weight = torch.ones_like(wrong)
        if self.weights is not None:
            # A pattern without the true class has concern 1 everywhere (Algorithm 1, line 7).
            of_pairs = pair_weights(self.weights, true, label)
            weight = torch.where(has_true.unsqueeze(1) > 0, of_pairs, weight)
        wrong_concern = (wrong * weight).sum(dim=1)
        wrong_log = (wrong_logs * weight).sum(dim=1)
        true_concern = has_true  # for k = 1: there are no other classes to add up
        if self.k > 1:
            of_others = wrong_concern if self.correct_concern == "sum" else self.k - 1
            true_concern = has_true * of_others
        weighted_logs = wrong_log + true_concern * true_log
        total_concern = wrong_concern + true_concern
        return (weighted_logs / total_concern).abs()  # logs are at most 0

    def terms(self, rows: Samples) -> Sequence[Term]:
        """Return the score and 1, at the true class if the value is by class."""
        place = None if self.average == "micro" else rows.labels.target
        return Term(place, rows.map(self.term)), Term(place)

    def row_ratios(self, whole: WeightedSum) -> Ratios:  # noqa: ARG002  # the same for any samples
        """Return the lowest and the highest score of a sample, each with 1 as the denominator."""
        assert self.t is not None
        highest = log((self.t - 1) / LOWEST_LEVEL)
        return [(0, 1), (highest, 1)]


def weight_matrix(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor | None:
    """Check the weights, and return them as float64 (C, C); return None if all are 1.

    The matrix is dense with a diagonal of 1, or sparse if ``concern`` is. Equivalent dense concerns give equal
    matrices, because metrics compare hashes of their settings.
    """
    if concern is None:
        return None
    weights = concern_weights(concern, compact=True)
    check_concern(weights, num_classes)
    matrix = weights.detach().to(widest_float(weights.device), copy=True)
    if matrix.layout == torch.sparse_coo:
        return matrix.coalesce()
    matrix.fill_diagonal_(1)
    return None if (matrix == 1).all() else matrix


def pair_weights(concern: Tensor, true: Tensor, predicted: Tensor) -> Tensor:
    """Look up the weight of each pair of classes in ``concern`` (C, C); weights not stored in a sparse tensor are 1."""
    if concern.layout == torch.strided:
        return concern[true, predicted]
    # One number for each pair, in the order of the stored ones.
    pairs = true * concern.shape[1] + predicted
    if len(concern.values()) == 0:
        return torch.ones_like(pairs, dtype=concern.dtype)
    rows, columns = concern.indices()
    stored = rows * concern.shape[1] + columns
    index = torch.searchsorted(stored, pairs.contiguous()).clamp_(max=len(stored) - 1)
    return torch.where(stored[index] == pairs, concern.values()[index], 1)
