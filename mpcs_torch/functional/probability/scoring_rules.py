"""Proper scoring rules: the Brier score and the cross entropy."""

from typing import Literal

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, widest_float
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.probabilities import Samples, Scale, checked_terms, scale_of

OverClasses = Literal["sum", "mean"]


def brier_score(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    over_classes: OverClasses = "sum",
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the Brier score of probabilities; in [0, 2] (mean over classes: [0, 2 / C]), lower is better.

    .. math:: \frac{1}{N} \sum_n \sum_c (p_{nc} - [y_n = c])^2

    ``over_classes`` is ``"sum"`` as in the equation, or ``"mean"`` to divide it by C: the mean squared error of the
    MPCS paper. The other arguments, the result and the errors are those of `geometric_accuracy`, without its floor
    ``epsilon``.

    References:
        Brier: Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950, Eq. 2.

    Example:
        >>> probs = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
        >>> brier_score(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.3125, dtype=torch.float64)
    """
    check_choice("over_classes", over_classes, OverClasses)
    terms = checked_terms(squared_error, preds, target, sample_weight, num_classes, scale_of(from_logits), ignore_index)
    return brier_of(terms.summed(), num_classes, over_classes)


def squared_error(samples: Samples) -> Tensor:
    """Return each sample's sum of squared differences of probabilities and one-hot label: (M,), float64 or float32."""
    # exp(log_softmax) and softmax differ in the last digit; records of training runs contain the former.
    probs = samples.probs() if samples.scale == "probs" else samples.log_probs().exp()
    label = samples.labels.target.unsqueeze(1)
    squares = probs.scatter_add(1, label, torch.full_like(label, -1, dtype=probs.dtype)).square()
    return squares.to(widest_float(squares.device)).sum(1)  # faster than a sum with a dtype


def brier_of(sums: WeightedSum, num_classes: int, over_classes: OverClasses) -> Tensor:
    """Return `brier_score` from the weighted sum of the squared errors of samples."""
    return sums.total / (sums.weight if over_classes == "sum" else sums.weight * num_classes)


def cross_entropy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    normalized: bool = False,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    .. math:: \frac{1}{N} \sum_n -\log p_{n y_n}

    It is `torch.nn.functional.cross_entropy`, summed in float64; probabilities are accepted too. ``normalized``
    declares logits to be log-probabilities, which saves a `log_softmax`. The other arguments and errors are those of
    `geometric_accuracy`, without its floor ``epsilon``.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples, infinite if a true class has probability 0.

    Example:
        >>> probs = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
        >>> cross_entropy(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.4581, dtype=torch.float64)
    """
    scale = entropy_scale(from_logits=from_logits, normalized=normalized)
    sums = checked_terms(log_loss, preds, target, sample_weight, num_classes, scale, ignore_index).summed()
    return sums.total / sums.weight


def entropy_scale(*, from_logits: bool, normalized: bool) -> Scale:
    """Return the scale of scores by name; raise a ValueError if ``normalized`` is set but ``from_logits`` is not."""
    if normalized and not from_logits:
        raise ValueError("normalized=True needs from_logits=True: it declares logits to be log-probabilities.")
    return "log_probs" if normalized else "logits" if from_logits else "probs"


def log_loss(samples: Samples) -> Tensor:
    """Return -log of the probability of the true class of each sample: (M,), float64 (float32 on MPS)."""
    wide = widest_float(samples.scores.device)
    if samples.scale == "probs":
        return -samples.of_true_class(samples.probs()).to(wide).log()
    return -samples.of_true_class(samples.log_probs()).to(wide)
