"""The Meta Pattern Concern Score (MPCS), vectorised."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, check_concern, check_pattern_settings
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, scale_of

CorrectConcern = Literal["sum", "count"]
Reduction = Literal["mean", "sum", "none"]

COUNTED_CLASSES = 32
"""Up to this number of classes, comparing all pairs of them is quicker than sorting each sample."""


def meta_pattern_concern_score(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    k: int | None = None,
    t: int = 200,
    concern: Tensor | None = None,
    from_logits: bool = True,
    correct_concern: CorrectConcern = "sum",
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Compute the Meta Pattern Concern Score (MPCS); in nats, lower is better, 0 is perfect.

    It punishes unsure and wrong confidences in proportion to how much each confusion matters.

    For one sample with true class :math:`y`, over its pattern of the k most probable classes :math:`l_i` (ties to the
    lower class index), with confidence :math:`c_i` in interval :math:`b_i = \min(\lfloor t c_i \rfloor, t - 1)`:

    .. math::
        S = \sum_{i=1}^{k} -\log\frac{\max(P_i, 10^{-7})}{t - 1} \cdot \frac{D_i}{\sum_j D_j}, \qquad
        P_i = \begin{cases} b_i & l_i = y \\ t - 1 - b_i & l_i \ne y \end{cases}

    The concern :math:`D_i` is ``concern[y, l_i]`` for a wrong class, and the sum of those for the true class. If the
    true class is not in the pattern, every class in the pattern has concern 1.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``. Half
            types are upcast before the softmax.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        k: The number of most probable classes to look at, from 1 to C. Default: 5, or C if that is less.
        t: The number of intervals that [0, 1] is divided into, from 2 to 2^29.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the diagonal is not
            read. Default: 1 everywhere.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        correct_concern: The concern of the true class: ``"sum"`` of the others (Eq. 8), or their ``"count"`` k - 1,
            which the published runs used.
        ignore_index: Label of samples to leave out.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one weighted score per sample (0 where ignored).

    Returns:
        A float64 tensor (float32 on MPS): a scalar, or the shape of ``target`` with ``reduction="none"``. The mean is
        NaN if no sample has weight.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9 and Algorithm 1. Deviations: for
        k = 1 the true class has concern 1 (Algorithm 1 gives 0/0); one weight per pair instead of one factor.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
        >>> target = torch.tensor([0, 2])
        >>> meta_pattern_concern_score(probs, target, num_classes=3, t=20, from_logits=False)
        tensor(0.3145, dtype=torch.float64)
    """
    check_choice("reduction", reduction, Reduction)
    k = default_k(num_classes) if k is None else k
    check_mpcs_settings(k=k, t=t, num_classes=num_classes, correct_concern=correct_concern)
    if concern is not None:
        check_concern(concern, num_classes)
    samples = flatten_samples(
        preds,
        target,
        num_classes=num_classes,
        scale=scale_of(from_logits),
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    raise_first(samples.find_faults())
    terms = pattern_terms(samples.probs(), samples.labels.target, k=k, t=t, concern=concern)
    weight = samples.labels.weight
    weighted = score_terms(terms, k=k, correct_concern=correct_concern) * weight
    if reduction == "none":
        return weighted.reshape(target.shape)
    return weighted.sum() if reduction == "sum" else weighted.sum() / weight.sum()


def default_k(num_classes: int) -> int:
    """Return the number of classes that are looked at by default."""
    return min(5, num_classes)


def check_mpcs_settings(*, k: int, t: int, num_classes: int, correct_concern: str) -> None:
    """Refuse k outside [1, C], t outside [2, 2^29], and an unknown rule for the concern of the true class."""
    check_pattern_settings(k=k, t=t, num_classes=num_classes)
    check_choice("correct_concern", correct_concern, CorrectConcern)


class PatternMember(NamedTuple):
    """One place of the prediction pattern (Eq. 4), over M samples."""

    label: Tensor | int
    """The class: (M,) int64, or a single class for all samples."""
    confidence: Tensor
    """(M,): the probability of the class."""
    present: Tensor | bool
    """(M,), bool: whether the pattern holds the class."""


class PatternTerms(NamedTuple):
    """The terms of the score of M samples, before the true class gets its concern; float (M,) each."""

    others_concern: Tensor
    """Sum of the concern of the wrong classes in the pattern."""
    others_punishment: Tensor
    """Sum of their punishments, each multiplied by its concern."""
    true_present: Tensor
    """Bool: whether the pattern holds the true class."""
    true_punishment: Tensor


def prediction_pattern(probs: Tensor, k: int) -> list[PatternMember]:
    """Return the k most probable classes of each row of (M, C); ties go to the lower class index on every device."""
    if k < probs.shape[1] > COUNTED_CLASSES:
        # `topk` leaves the order of ties open.
        confidences, labels = torch.sort(probs, dim=1, descending=True, stable=True)
        return [PatternMember(labels[:, i], confidences[:, i], True) for i in range(k)]
    by_class = probs.t().contiguous()
    present = _ranks(by_class) < k if k < len(by_class) else [True] * k
    return [PatternMember(j, by_class[j], present[j]) for j in range(len(by_class))]


def _ranks(by_class: Tensor) -> Tensor:
    """Return the rank of each class, from 0, in a stable descending sort over classes (C, M): int8 (C, M)."""
    rank = torch.zeros_like(by_class, dtype=torch.int8)
    for j in range(1, len(by_class)):
        earlier_first = (by_class[:j] >= by_class[j]).view(torch.int8)
        rank[j] = earlier_first.sum(dim=0, dtype=torch.int8)
        rank[:j] += 1 - earlier_first
    return rank


@torch.no_grad()  # the score is piecewise constant
def pattern_terms(probs: Tensor, target: Tensor, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Sum over the members of the prediction patterns of (M, C) probabilities with labels (M,)."""
    num_classes = probs.shape[1]
    pattern = prediction_pattern(probs, k)
    true_present = torch.zeros_like(target, dtype=torch.bool)
    for label, _, present in pattern:
        true_present |= (target == label) & present

    # Outside the pattern (Alg. 1 line 7) the last row of the table, all ones, stands in for the true class's row.
    table = _concern_table(probs, concern)
    row_start = torch.where(true_present, target, num_classes) * num_classes
    others_concern = torch.zeros_like(target, dtype=table.dtype)
    others_punishment = torch.zeros_like(others_concern)
    for label, confidence, present in pattern:
        weight = table.take(row_start + label).mul_(present)
        others_concern += weight
        others_level = _interval(confidence, t).neg_().add_(t - 1)  # Eq. 6; below 0 for the interval of p = 1
        others_punishment.addcmul_(_log_level(others_level, t), weight, value=-1)

    true_confidence = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    true_level = _interval(true_confidence, t).clamp_(max=t - 1)
    return PatternTerms(others_concern, others_punishment, true_present, -_log_level(true_level, t))


def score_terms(terms: PatternTerms, *, k: int, correct_concern: CorrectConcern) -> Tensor:
    """Return the score of each sample (Eq. 9): (M,)."""
    share = terms.others_concern
    if correct_concern == "count" or k == 1:  # the sum is 0 for a pattern that is the true class alone
        share = torch.full_like(share, max(k - 1, 1))
    true_concern = share * terms.true_present
    total = terms.others_concern + true_concern
    return (terms.others_punishment + true_concern * terms.true_punishment) / total


def _concern_table(probs: Tensor, concern: Tensor | None) -> Tensor:
    """Return the concern matrix with a diagonal of 0 and one more row of ones: (C + 1, C)."""
    num_classes = probs.shape[1]
    table = torch.ones(num_classes + 1, num_classes, dtype=widest_float(probs.device), device=probs.device)
    if concern is not None:
        table[:num_classes] = concern
    table[:num_classes].fill_diagonal_(0)
    return table


def _interval(confidence: Tensor, t: int) -> Tensor:
    """Return the interval of each confidence, from 0 to t (Alg. 1 line 4; only p = 1 gives t), in the widest float."""
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    return confidence.to(widest_float(confidence.device), copy=True).mul_(t).floor_()


def _log_level(level: Tensor, t: int) -> Tensor:
    """Return log(level / best level) (Alg. 1 lines 18, 19); overwrites the levels."""
    return level.clamp_(min=1e-7).div_(t - 1).log_()
