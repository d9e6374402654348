"""The Brier score."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, check_num_classes
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import Samples, flatten_samples, scale_of

OverClasses = Literal["sum", "mean"]


class BrierSums(NamedTuple):
    """Sums over samples, each multiplied by its weight: (...), in the widest float."""

    squared_error: Tensor
    """Squared differences of all classes."""
    samples: Tensor
    """1 for each sample."""


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

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        over_classes: ``"sum"`` over the classes, as in the equation, or their ``"mean"``, which divides it by C: the
            mean squared error that the MPCS paper reports.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Brier: Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950, Eq. 2.

    Example:
        >>> probs = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
        >>> brier_score(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.3125, dtype=torch.float64)
    """
    check_num_classes(num_classes)
    check_choice("over_classes", over_classes, OverClasses)
    samples = flatten_samples(
        preds,
        target,
        num_classes=num_classes,
        scale=scale_of(from_logits),
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    raise_first(samples.find_faults())
    return brier_of(brier_sums(samples), num_classes, over_classes)


def brier_sums(samples: Samples) -> BrierSums:
    """Sum the squared differences of probabilities and one-hot labels, without looking at a value."""
    # The last digit differs from that of a softmax: records of training runs hold this value.
    probs = samples.scores if samples.scale == "probs" else samples.log_probs().exp()
    label, weight = samples.labels.target.unsqueeze(1), samples.labels.weight
    squares = probs.scatter_add(1, label, torch.full_like(label, -1, dtype=probs.dtype)).square()
    if samples.labels.bins is not None:
        squared_error = samples.labels.sum(squares.sum(1, dtype=weight.dtype) * weight)
        return BrierSums(squared_error, samples.labels.sum(weight))
    if not samples.labels.is_unweighted:  # a product with ones would only be a larger tensor
        squares = squares * weight.unsqueeze(1)
    return BrierSums(squares.sum(dtype=weight.dtype), weight.sum())


def brier_of(sums: BrierSums, num_classes: int, over_classes: OverClasses) -> Tensor:
    """Return the mean over samples of the sum or the mean over classes."""
    return sums.squared_error / (sums.samples if over_classes == "sum" else sums.samples * num_classes)
