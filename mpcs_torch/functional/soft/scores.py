"""Precision, recall and F for soft labels (degrees of truth), as from disagreeing annotators, smoothing or mixup."""

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_beta
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import flatten_soft
from mpcs_torch.functional.soft.hard import check_threshold, hard_sums
from mpcs_torch.functional.soft.sums import SoftAverage, TNorm, check_soft_settings, checked_sums, score_of


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
    return score_of(hard_sums(samples, threshold), beta=1.0, average=average, zero_division=zero_division)


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
    return score_of(sums, beta=beta, average=average, zero_division=zero_division)
