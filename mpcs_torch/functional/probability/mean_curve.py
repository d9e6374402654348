"""Generalized means of the probability of the true class over their powers."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.probabilities import checked_samples, scale_of
from mpcs_torch.functional.probability.generalized import log_generalized_mean
from mpcs_torch.functional.probability.measured import Span, check_bins, measure

POWERS = tuple(tenth / 10 for tenth in range(-20, 21))


class MeanCurve(NamedTuple):
    """Means in [0, 1] over their powers: float64 (R,) each."""

    power: Tensor
    reported: Tensor
    """Of the probabilities that the classifier reports for true classes."""
    measured: Tensor
    """Of the rates at which classes with such probabilities are true."""


def generalized_mean_curve(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    powers: Sequence[float] = POWERS,
    from_logits: bool = True,
    epsilon: float = 0.005,
    n_bins: int = 20,
    delta: float | None = 0.005,
    span: Span = "data",
    ignore_index: int | None = None,
) -> MeanCurve:
    """Compute the generalized means of reported and measured probabilities for several powers; higher is better.

    Both rise with the power: from robustness (-2/3) over geometric accuracy (0) to decisiveness (1). Where reported
    lies below measured, the classifier is better than it says, seen by a mean of that power.

    ``powers`` are R finite numbers, by default -2 to 2 in steps of 0.1. ``epsilon`` is the floor of probabilities and
    rates. The other arguments and errors are those of `measured_probabilities`.

    Returns:
        The curve, float32 on MPS; NaN without samples.

    References:
        George, Barrera, Nelson: Applying the decisiveness and robustness metrics to convolutional neural networks,
        arXiv:2006.00058, Eq. 2 and Section 4. The paper looks at three powers.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> curve = generalized_mean_curve(
        ...     probs, torch.tensor([0, 1]), num_classes=2, powers=(-2 / 3, 0, 1), from_logits=False
        ... )
        >>> curve.reported
        tensor([0.5684, 0.6000, 0.6500], dtype=torch.float64)
    """
    check_bins(epsilon, n_bins, delta, span)
    if not powers or not all(isfinite(power) for power in powers):
        raise ValueError(f"powers must be finite and at least one, but got {powers}.")
    samples = checked_samples(
        preds, target, num_classes=num_classes, scale=scale_of(from_logits), ignore_index=ignore_index
    )
    counted, probs, labels = samples.labels.counted, samples.probs(), samples.labels.target
    of_true = samples.of_true_class(probs)[counted].to(samples.labels.weight.dtype)
    bins = measure(probs[counted], labels[counted], epsilon, n_bins, delta, span)
    reported = _means(of_true, torch.ones_like(of_true), powers, epsilon)
    return MeanCurve(reported.new_tensor(powers), reported, _means(bins.rate, bins.correct, powers, epsilon))


def _means(values: Tensor, weights: Tensor, powers: Sequence[float], epsilon: float) -> Tensor:
    logs = values.clamp(min=epsilon).log()
    return torch.stack([log_generalized_mean(logs, weights, power).exp() for power in powers])
