"""The Meta Pattern Concern Score (MPCS), vectorised."""

from typing import Literal

from torch import Tensor

from mpcs_torch.functional.concern.concession import chosen_intervals
from mpcs_torch.functional.concern.pattern import pattern_terms
from mpcs_torch.functional.concern.terms import CorrectConcern, score_terms
from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensors, is_spec, weights_of
from mpcs_torch.functional.inputs.checks import check_choice, check_concern, check_pattern_settings
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import flatten_given, scale_of

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

    It punishes unsure and wrong confidences in proportion to how much each confusion matters.

    For one sample with true class :math:`y`, over its pattern of the k most probable classes :math:`l_i` (ties to the
    lower class index), with confidence :math:`c_i` in interval :math:`b_i = \min(\lfloor t c_i \rfloor, t - 1)`:

    .. math::
        S = \sum_{i=1}^{k} -\log\frac{\max(P_i, 10^{-7})}{t - 1} \cdot \frac{D_i}{\sum_j D_j}, \qquad
        P_i = \begin{cases} b_i & l_i = y \\ t - 1 - b_i & l_i \ne y \end{cases}

    The concern :math:`D_i` is ``concern[y, l_i]`` for a wrong class, and the sum of those for the true class. If the
    true class is not in the pattern, every class in the pattern has concern 1.

    The product :math:`t c_i` is rounded to float64, as in the published code: a float64 confidence within rounding of
    the edge of an interval may count as on it. For float32 confidences the product is exact.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``. Half
            types are upcast before the softmax.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        k: The number of most probable classes to look at, from 1 to C. Default: 5, or C if that is less.
        t: The number of intervals that [0, 1] is divided into, from 2 to 2^29. Default: 200 as in the published runs,
            unless ``concession`` is given.
        concession: How far a confidence may fall short of certainty without being punished, below 1/2: sets t to
            `concession_intervals`. The default t = 200 is a concession of just below 0.005. It prefers the classifier A
            of the paper's Table I to B, as cross entropy does; a concession of 0.02 prefers B, as the paper does.
        concern: A `ConcernSpec`, or ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the
            diagonal is not read. A sparse COO tensor holds the weights that are not 1. Default: 1 everywhere.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        correct_concern: The concern of the true class: ``"sum"`` of the others (Eq. 8), or their ``"count"`` k - 1,
            which the published runs used.
        ignore_index: Label of samples to leave out.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one weighted score per sample (0 where ignored).
        average: ``"micro"`` over all samples, or ``"none"`` for one value per true class, (C,).

    Returns:
        A float64 tensor (float32 on MPS): a scalar, (C,) with ``average="none"``, or the shape of ``target`` with
        ``reduction="none"``. The mean is NaN if no sample (of the class) has weight.

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
    check_choice("average", average, ScoreAverage)
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    k = default_k(num_classes) if k is None else k
    if t is None and concession is None and is_spec(concern):
        concession = concern.concession
    t = chosen_intervals(t, concession)
    check_mpcs_settings(k=k, t=t, num_classes=num_classes, correct_concern=correct_concern)
    weights = None if concern is None else weights_of(concern, compact=True).to(preds.device)
    if weights is not None:
        check_concern(weights, num_classes)
    samples = flatten_given(
        preds,
        target,
        num_classes=num_classes,
        scale=scale_of(from_logits),
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    terms = pattern_terms(samples, k=k, t=t, concern=weights)
    raise_first(samples.find_faults(terms.is_bad))
    labels = samples.labels
    weighted = score_terms(terms, k=k, correct_concern=correct_concern) * labels.weight
    if reduction == "none":
        return weighted.reshape(target.shape)
    total = sum_scores(weighted, labels, average)
    return total if reduction == "sum" else total / sum_scores(labels.weight, labels, average)


def sum_scores(values: Tensor, labels: Labels, average: ScoreAverage) -> Tensor:
    """Sum values of samples, (M,), over all of them, or over those of each true class, (C,); (B, ...) with bins."""
    return labels.sum(values) if average == "micro" else labels.sum_by(labels.target, labels.num_classes, values)


def default_k(num_classes: int) -> int:
    """Return the number of classes that are looked at by default."""
    return min(5, num_classes)


def check_mpcs_settings(*, k: int, t: int, num_classes: int, correct_concern: str) -> None:
    """Refuse k outside [1, C], t outside [2, 2^29], and an unknown rule for the concern of the true class."""
    check_pattern_settings(k=k, t=t, num_classes=num_classes)
    check_choice("correct_concern", correct_concern, CorrectConcern)
