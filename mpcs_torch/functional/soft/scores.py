"""Precision, recall and F for soft labels (degrees of truth), as from disagreeing annotators, smoothing or mixup."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_beta, check_choice, check_zero_division, widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft

SoftAverage = Literal["micro", "macro", "weighted", "none"]
TNorm = Literal["minimum", "product", "lukasiewicz"]
"""A fuzzy "and": the degree of truth of a conjunction."""


class SoftSums(NamedTuple):
    """Weighted sums over samples, for each class: (..., C) each."""

    shared: Tensor
    """The sum of T(p, y), by default min(p, y)."""
    predicted: Tensor
    """The sum of the predictions p."""
    actual: Tensor
    """The sum of the labels y."""
    elements: Tensor
    """The sum of the weights of the elements that are not ignored."""


def checked_sums(
    preds: Tensor, target: Tensor, sample_weight: Tensor | None, ignore: Tensor | None, num_classes: int, t_norm: TNorm
) -> SoftSums:
    """Validate a batch, and return its `SoftSums`."""
    check_choice("t_norm", t_norm, TNorm)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    return soft_sums(samples, widest_float(samples.preds.device), t_norm)


def soft_sums(samples: SoftSamples, dtype: torch.dtype, t_norm: TNorm = "minimum") -> SoftSums:
    """Return the `SoftSums` of the samples in a wide dtype, without synchronizing an accelerator."""

    def degrees(chunk: SoftSamples) -> tuple[Tensor, Tensor, Tensor]:
        predicted, actual = chunk.predicted, chunk.actual
        return _intersection(predicted, actual, t_norm, dtype), predicted, actual

    shared, predicted, actual = samples.sums(degrees, dtype)
    return SoftSums(shared, predicted, actual, samples.elements(dtype))


def _intersection(p: Tensor, y: Tensor, t_norm: TNorm, dtype: torch.dtype) -> Tensor:
    """Return the T-norm T(p, y) of each element."""
    if t_norm == "minimum":
        return torch.minimum(p, y)
    p, y = p.to(dtype), y.to(dtype)  # p + 1 loses digits of a small p in float32
    return p * y if t_norm == "product" else (p + y - 1).clamp(min=0)


def score_from_sums(sums: SoftSums, *, beta: float, average: SoftAverage, zero_division: float) -> Tensor:
    """Return the F score, of shape (...), from sums (..., C); with the average "none", it has the shape (..., C).

    Beta = 0 gives precision, and an infinite beta recall.
    """
    actual_share = 1.0 if beta == float("inf") else beta**2 / (1 + beta**2)
    pooled = SoftSums(*(field.sum(-1) for field in sums)) if average == "micro" else sums
    mass = actual_share * pooled.actual + (1 - actual_share) * pooled.predicted
    is_empty = mass == 0
    score = torch.where(is_empty, zero_division, pooled.shared / torch.where(is_empty, 1.0, mass))
    if average == "macro":
        return score.mean(-1)
    if average == "weighted":
        total = sums.actual.sum(-1)
        # An absent class has weight 0, even if its score is NaN.
        weighted = torch.where(sums.actual == 0, 0.0, score * sums.actual).sum(-1)
        return torch.where(total == 0, zero_division, weighted / torch.where(total == 0, 1.0, total))
    return score


def check_soft_settings(num_classes: int, average: str, zero_division: float) -> None:
    """Check the number of classes, the average, and the value of 0 / 0."""
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, but got {num_classes}.")
    check_choice("average", average, SoftAverage)
    check_zero_division(zero_division)


class SoftStatScores(NamedTuple):
    """Degrees of truth summed over samples, for each class: float64 (C,) each."""

    tp: Tensor
    fp: Tensor
    fn: Tensor
    tn: Tensor


def soft_stat_scores(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    t_norm: TNorm = "minimum",
) -> SoftStatScores:
    r"""Compute the soft counts of true and false positives and negatives of each class.

    .. math::
        TP = \sum T(p, y), \quad FP = \sum p - TP, \quad FN = \sum y - TP, \quad TN = \sum T(1 - p, 1 - y)

    With the minimum as T, FP is the sum of max(p - y, 0), and FN the sum of max(y - p, 0). For labels and
    predictions of 0 and 1, these are the usual counts for any T. Arguments, errors and references are those of
    `soft_fbeta`.

    Returns:
        ``(C,)`` each, float64 (float32 on MPS), with gradients.

    Example:
        >>> import torch
        >>> scores = soft_stat_scores(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        >>> print(*(f"{name} {value.item():.1f}" for name, value in scores._asdict().items()))
        tp 1.1 fp 0.3 fn 0.1 tn 0.5
    """
    check_soft_settings(num_classes, "none", 0.0)
    sums = checked_sums(preds, target, sample_weight, ignore, num_classes, t_norm)
    # T(1 - p, 1 - y) = 1 - p - y + T(p, y) holds for all three T-norms.
    negatives = sums.elements - sums.predicted - sums.actual + sums.shared
    return SoftStatScores(sums.shared, sums.predicted - sums.shared, sums.actual - sums.shared, negatives)


HARD_LABEL = 0.5
"""The threshold of soft labels: a label above it is positive."""


def hard_sums(samples: SoftSamples, threshold: float | Tensor) -> SoftSums:
    """Count predictions above ``threshold``, labels above 0.5, and both, without synchronizing an accelerator."""
    wide = widest_float(samples.preds.device)
    limit = threshold.to(samples.preds.device, wide) if isinstance(threshold, Tensor) else threshold

    def thresholded(chunk: SoftSamples) -> tuple[Tensor, Tensor, Tensor]:
        predicted, actual = chunk.predicted > limit, chunk.actual > HARD_LABEL
        predicted = predicted if chunk.ignored is None else predicted & chunk.counted
        return predicted & actual, predicted, actual

    shared, predicted, actual = samples.sums(thresholded, wide)
    return SoftSums(shared, predicted, actual, samples.elements(wide))


def check_threshold(threshold: float | Tensor, num_classes: int) -> None:
    """Check that a threshold is not NaN and, if it is a tensor, has one value for each class."""
    if isinstance(threshold, Tensor) and (threshold.shape != (num_classes,) or not threshold.is_floating_point()):
        raise ValueError(
            f"threshold must be a number or floating point of shape ({num_classes},), "
            f"but got {threshold.dtype} of shape {tuple(threshold.shape)}."
        )
    if torch.as_tensor(threshold).isnan().any():
        raise ValueError(f"threshold must not be NaN, but got {threshold}.")


class FThresholds(NamedTuple):
    """The best thresholds of the classes: float64 (C,) each."""

    threshold: Tensor
    """The threshold of each class; a prediction above it is positive."""
    fscore: Tensor
    """The F score at that threshold, in [0, 1]."""


def best_f_thresholds(
    preds: Tensor, target: Tensor, ignore: Tensor | None = None, *, num_classes: int, beta: float = 1.0
) -> FThresholds:
    r"""Compute for each class the threshold of predictions with the highest F against labels above 0.5.

    All distinct predictions are tried, so the maximum is exact. The threshold is the middle of the interval of optimal
    thresholds. If several intervals tie, it is the middle of the widest bounded one (the lowest of equally wide ones).
    Thresholds with the same F here can differ on new data. The threshold is -inf if accepting everything is optimal. A
    class without a label above 0.5 gets the threshold +inf, and NaN as F.

    F on the same data is optimistic: choose thresholds on development data, and evaluate with `hard_f1` on a hold-out.
    Per-class thresholds maximize macro F; micro F can fall. Arguments and errors are those of `soft_fbeta`.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1 (optimal threshold).

    Example:
        >>> preds, target = torch.tensor([0.1, 0.2, 0.4, 0.7]), torch.tensor([0.2, 0.4, 0.6, 0.9])
        >>> best = best_f_thresholds(preds, target, num_classes=1)
        >>> print(f"F {best.fscore.item():.1f} above {best.threshold.item():.1f}")
        F 1.0 above 0.3
    """
    check_soft_settings(num_classes, "none", 0.0)
    check_beta(beta)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=None, ignore=ignore)
    raise_first(samples.find_faults())
    wide = widest_float(samples.preds.device)
    predicted, is_true = samples.predicted.detach().to(wide), samples.actual > HARD_LABEL
    columns = zip(predicted.unbind(1), is_true.unbind(1), samples.counted.unbind(1), strict=True)
    best = [_best_of_class(values[counted], truth[counted], beta) for values, truth, counted in columns]
    return FThresholds(*(torch.stack(field) for field in zip(*best, strict=True)))


def _best_of_class(predicted: Tensor, is_true: Tensor, beta: float) -> FThresholds:
    """Return the threshold with the highest F for predictions (M,), chosen as in `best_f_thresholds`, and this F."""
    if not is_true.any():
        return FThresholds(predicted.new_tensor(torch.inf), predicted.new_tensor(torch.nan))
    values, place, total = torch.unique(predicted, return_inverse=True, return_counts=True)
    positives = torch.zeros_like(total).index_add(0, place, is_true.to(total))
    from_value_up = (counts.flip(0).cumsum(0).flip(0).to(predicted) for counts in (total, positives))
    accepted, hits = from_value_up
    fscore = (1 + beta**2) * hits / (beta**2 * hits[0] + accepted)
    best = fscore == fscore.max()
    edges = best.to(total).diff(prepend=total.new_zeros(1), append=total.new_zeros(1))
    first, last = (edges == 1).nonzero().squeeze(1), (edges == -1).nonzero().squeeze(1) - 1
    low = torch.where(first > 0, values[(first - 1).clamp(min=0)], -torch.inf)
    high = values[last]
    widest = (high - low).nan_to_num(posinf=-1).argmax()
    return FThresholds(_midpoint(low[widest], high[widest]), fscore.max())


def _midpoint(low: Tensor, high: Tensor) -> Tensor:
    """Return the middle of the interval [low, high), or ``low`` if no other float lies in it."""
    middle = low + (high - low) / 2
    return torch.where(low.isinf() | (middle >= high), low, middle)


def soft_precision(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the soft precision :math:`\sum T(p, y) / \sum p`; in [0, 1], higher is better.

    It is the share of the predicted truth that the labels confirm. For arguments, result and errors, see `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_precision(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.7857, dtype=torch.float64)
    """
    return _score(preds, target, sample_weight, ignore, num_classes, 0.0, average, zero_division, t_norm)


def soft_recall(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the soft recall :math:`\sum T(p, y) / \sum y`; in [0, 1], higher is better.

    It is the share of the truth in the labels that was predicted. For arguments, result and errors, see `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_recall(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.9167, dtype=torch.float64)
    """
    return _score(preds, target, sample_weight, ignore, num_classes, float("inf"), average, zero_division, t_norm)


def soft_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the harmonic mean of soft precision and recall; in [0, 1], higher is better.

    It is `soft_fbeta` with beta = 1. Arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_f1(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.8462, dtype=torch.float64)
    """
    return _score(preds, target, sample_weight, ignore, num_classes, 1.0, average, zero_division, t_norm)


def soft_fbeta(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    beta: float,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the F score of soft precision and recall; in [0, 1], higher is better.

    .. math:: F_\beta = \frac{(1 + \beta^2) \sum T(p, y)}{\beta^2 \sum y + \sum p}, \quad T(p, y) = \min(p, y)

    The value is differentiable except where a prediction equals its label. For labels and predictions of 0 and 1 it is
    the usual F. With the minimum, it is 1 exactly if predictions equal labels. Other T-norms (intersections of fuzzy
    sets) do not ensure this, because only the minimum is idempotent: T(x, x) = x.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1]: probabilities of
            classes or of labels. Further dimensions (time, space) count as samples.
        target: The same shape, floating point, integer or bool, in [0, 1]. There is no ``ignore_index``: use ``ignore``
            or ``sample_weight``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        ignore: The shape of ``preds``, bool: True for each element to leave out.
        num_classes: C; 1 for predictions of shape ``(N,)``.
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by the
            sum of the labels of each class, ``"none"`` for one value per class.
        zero_division: The value of 0 / 0: 0, 1 or NaN.
        t_norm: T(p, y), from the largest to the smallest: ``"minimum"``, ``"product"``, or ``"lukasiewicz"``, which is
            max(p + y - 1, 0).

    Returns:
        A float64 scalar (float32 on MPS), or ``(C,)`` with ``average="none"``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.1, Eq. 3.

    Example:
        >>> import torch
        >>> soft_fbeta(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1, beta=2.0)
        tensor(0.8871, dtype=torch.float64)
    """
    check_beta(beta)
    return _score(preds, target, sample_weight, ignore, num_classes, beta, average, zero_division, t_norm)


def hard_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    threshold: float | Tensor = 0.5,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
) -> Tensor:
    """Compute the F1 of predictions above a threshold against labels above 0.5; in [0, 1], higher is better.

    This older score for soft labels ignores the distance between prediction and label. It is optimistic on the data on
    which `best_f_thresholds` chose the thresholds. It has no gradient.
    A prediction above ``threshold``, a number or ``(C,)`` numbers, one for each class, is positive. The average
    ``"weighted"`` weighs classes by the number of positive labels. The other arguments, the shape of the result and
    errors are those of `soft_fbeta`.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1 (the rows "Hard" and "Hard / OT" of Table 2).

    Example:
        >>> import torch
        >>> hard_f1(torch.tensor([0.9, 0.6, 0.1]), torch.tensor([1.0, 0.2, 0.0]), num_classes=1)
        tensor(0.6667, dtype=torch.float64)
    """
    check_soft_settings(num_classes, average, zero_division)
    check_threshold(threshold, num_classes)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    return score_from_sums(hard_sums(samples, threshold), beta=1.0, average=average, zero_division=zero_division)


def _score(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None,
    ignore: Tensor | None,
    num_classes: int,
    beta: float,
    average: SoftAverage,
    zero_division: float,
    t_norm: TNorm,
) -> Tensor:
    check_soft_settings(num_classes, average, zero_division)
    sums = checked_sums(preds, target, sample_weight, ignore, num_classes, t_norm)
    return score_from_sums(sums, beta=beta, average=average, zero_division=zero_division)


def soft_kl_divergence(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    epsilon: float = 0.0,
) -> Tensor:
    r"""Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    0 is perfect. The mean is over all elements of all classes:

    .. math:: \frac{1}{n} \sum y \log \frac{y}{p} + (1 - y) \log \frac{1 - y}{1 - p}

    Predictions are clamped to [epsilon, 1 - epsilon], with ``epsilon`` from 0 to below 1/2. If it is 0, the mean is
    infinite if a prediction is 0 or 1 and its label differs. The other arguments and errors are those of `soft_fbeta`.

    Returns:
        A float64 scalar (float32 on MPS), with gradients; NaN if every element is ignored.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.2 (Table 1) and Section 3 (Table 2).

    Example:
        >>> soft_kl_divergence(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """
    check_epsilon(epsilon)
    samples = flatten_soft(preds, target, num_classes=None, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    sums = divergence_sums(samples, epsilon)
    return sums.total / sums.weight


def divergence_sums(samples: SoftSamples, epsilon: float) -> WeightedSum:
    """Sum the divergences of all elements that are not ignored, without synchronizing an accelerator."""
    wide = widest_float(samples.preds.device)  # 1 - 1e-8 is 1 in float32

    def divergences(chunk: SoftSamples) -> tuple[Tensor]:
        p, y = chunk.predicted.to(wide), chunk.actual.to(wide)
        p = p.clamp(epsilon, 1 - epsilon) if epsilon else p
        values = _divergence(p, y) + _divergence(1 - p, 1 - y)
        return (values if chunk.ignored is None else torch.where(chunk.ignored, 0.0, values),)

    (divergence,) = samples.sums(divergences, wide)
    return WeightedSum(divergence.sum(-1), samples.elements(wide).sum(-1))


def check_epsilon(epsilon: float) -> None:
    """Check that epsilon is from 0 to below 0.5."""
    if not 0 <= epsilon < 0.5:
        raise ValueError(f"epsilon must be from 0 to below 0.5, but got {epsilon}.")


def _divergence(p: Tensor, y: Tensor) -> Tensor:
    """Return y log(y / p) of each element. If y is 0, the value and its gradient are 0 for every p."""
    is_positive = y > 0
    return y * (torch.where(is_positive, y, 1.0).log() - torch.where(is_positive, p, 1.0).log())
