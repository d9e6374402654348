"""The Meta Pattern Concern Score (MPCS), vectorised."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_concern, check_pattern_settings
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples

CorrectConcern = Literal["sum", "count"]
Reduction = Literal["mean", "sum", "none"]

COUNTED_CLASSES = 32
"""Up to so many classes, comparing all pairs of them is quicker than sorting each sample."""


def meta_pattern_concern_score(
    preds: Tensor,
    target: Tensor,
    *,
    k: int,
    t: int,
    concern: Tensor | None = None,
    from_logits: bool = True,
    correct_concern: CorrectConcern = "sum",
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Punish unsure and wrong confidences by how much each confusion matters; in nats, lower is better, 0 is perfect.

    For one sample with true class :math:`y`, over its pattern of the k most probable classes :math:`l_i` (ties to the
    lower class index), with confidence :math:`c_i` in interval :math:`b_i = \min(\lfloor t c_i \rfloor, t - 1)`:

    .. math::
        S = \sum_{i=1}^{k} -\log\frac{\max(P_i, 10^{-7})}{t - 1} \cdot \frac{D_i}{\sum_j D_j}, \qquad
        P_i = \begin{cases} b_i & l_i = y \\ t - 1 - b_i & l_i \ne y \end{cases}

    The concern :math:`D_i` is ``concern[y, l_i]`` for a wrong class, and the sum of those for the true class; where
    the true class is outside the pattern, every class of it has concern 1.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``. Half
            types are upcast before the softmax.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        k: How many classes to look at, ``1 <= k <= C``.
        t: How many intervals to cut [0, 1] into, at least 2.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the diagonal is not
            read. Default: 1 everywhere.
        from_logits: Whether ``preds`` are logits. Never guessed.
        correct_concern: The concern of the true class: ``"sum"`` of the others (Eq. 8), or their ``"count"`` k - 1,
            as the published runs computed it.
        ignore_index: Label of samples to leave out.
        sample_weight: Weights >= 0 of the samples, in the shape of ``target``. ``"mean"`` is the weighted mean.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one weighted score per sample (0 where ignored).

    Returns:
        A float64 tensor (float32 on MPS): a scalar, or the shape of ``target`` with ``reduction="none"``. The mean is
        NaN where no sample has weight.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9 and Algorithm 1. Deviations: for
        k = 1 the true class has concern 1 (Algorithm 1 gives 0/0); one weight per pair instead of one factor.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
        >>> target = torch.tensor([0, 2])
        >>> meta_pattern_concern_score(probs, target, k=3, t=20, from_logits=False)
        tensor(0.3145, dtype=torch.float64)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', but got {reduction!r}.")
    num_classes = preds.shape[1] if preds.ndim > 1 else 0
    check_mpcs_settings(k=k, t=t, num_classes=num_classes, correct_concern=correct_concern)
    if concern is not None:
        check_concern(concern, num_classes)
    samples = flatten_samples(
        preds,
        target,
        num_classes=num_classes,
        from_logits=from_logits,
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    raise_first(samples.faults)
    terms = pattern_terms(samples.probs, samples.target, k=k, t=t, concern=concern)
    weighted = score_terms(terms, k=k, correct_concern=correct_concern) * samples.weight
    if reduction == "none":
        return weighted.reshape(target.shape)
    return weighted.sum() if reduction == "sum" else weighted.sum() / samples.weight.sum()


def check_mpcs_settings(*, k: int, t: int, num_classes: int, correct_concern: str) -> None:
    """Refuse k outside [1, C], fewer than 2 intervals, and an unknown rule for the true class's concern."""
    check_pattern_settings(k=k, t=t, num_classes=num_classes)
    if correct_concern not in ("sum", "count"):
        raise ValueError(f"correct_concern must be 'sum' or 'count', but got {correct_concern!r}.")


class PatternMember(NamedTuple):
    """One place of the prediction pattern (Eq. 4), over M samples."""

    label: Tensor | int
    """The class: (M,) int64, or one for all samples."""
    confidence: Tensor
    """(M,), its probability."""
    present: Tensor | bool
    """(M,), bool: whether the pattern holds it."""


class PatternTerms(NamedTuple):
    """What the score of each of M samples is made of, whichever concern the true class has; float, (M,) each."""

    others_concern: Tensor
    """Sum of the concern of the wrong classes in the pattern."""
    others_punishment: Tensor
    """Sum of their punishments, each times its concern."""
    true_present: Tensor
    """Bool: whether the pattern holds the true class."""
    true_punishment: Tensor


def prediction_pattern(probs: Tensor, k: int) -> list[PatternMember]:
    """The k most probable classes of each row of (M, C); ties go to the lower class index on every device."""
    if k < probs.shape[1] > COUNTED_CLASSES:
        # `topk` leaves the order of ties open.
        confidences, labels = torch.sort(probs, dim=1, descending=True, stable=True)
        return [PatternMember(labels[:, i], confidences[:, i], True) for i in range(k)]
    by_class = probs.t().contiguous()
    present = _ranks(by_class) < k if k < len(by_class) else [True] * k
    return [PatternMember(j, by_class[j], present[j]) for j in range(len(by_class))]


def _ranks(by_class: Tensor) -> Tensor:
    """How many classes stand before each in a stable descending sort of (C, M): int8 (C, M)."""
    rank = torch.zeros_like(by_class, dtype=torch.int8)
    for j in range(1, len(by_class)):
        earlier_first = (by_class[:j] >= by_class[j]).view(torch.int8)
        rank[j] = earlier_first.sum(dim=0, dtype=torch.int8)
        rank[:j] += 1 - earlier_first
    return rank


@torch.no_grad()  # the score is piecewise constant
def pattern_terms(probs: Tensor, target: Tensor, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Walk the prediction patterns of (M, C) probabilities with labels (M,), member by member over all samples."""
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
    """Eq. 9: the score of each sample, (M,)."""
    share = terms.others_concern
    if correct_concern == "count" or k == 1:  # the sum is 0 for a pattern that is the true class alone
        share = torch.full_like(share, max(k - 1, 1))
    true_concern = share * terms.true_present
    total = terms.others_concern + true_concern
    return (terms.others_punishment + true_concern * terms.true_punishment) / total


def _concern_table(probs: Tensor, concern: Tensor | None) -> Tensor:
    """The concern matrix with 0 at true classes, and a last row of ones: (C + 1, C)."""
    num_classes = probs.shape[1]
    table = torch.ones(num_classes + 1, num_classes, dtype=widest_float(probs.device), device=probs.device)
    if concern is not None:
        table[:num_classes] = concern
    table[:num_classes].fill_diagonal_(0)
    return table


def _interval(confidence: Tensor, t: int) -> Tensor:
    """The interval of each confidence, 0 to t (Alg. 1 line 4; p = 1 alone gives t), as the widest float."""
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    return confidence.to(widest_float(confidence.device), copy=True).mul_(t).floor_()


def _log_level(level: Tensor, t: int) -> Tensor:
    """Log of a level over the best level (Alg. 1 lines 18, 19); overwrites the levels."""
    return level.clamp_(min=1e-7).div_(t - 1).log_()
