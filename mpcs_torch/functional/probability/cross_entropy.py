"""The cross entropy."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import Samples, Scale, flatten_samples


class EntropySums(NamedTuple):
    """Sums over samples, each multiplied by its weight: scalars in the widest float."""

    entropy: Tensor
    """-log of the probability of the true class."""
    samples: Tensor
    """1 for each sample."""


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

    It is `torch.nn.functional.cross_entropy` summed in float64, also for probabilities.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        normalized: Whether the logits are log-probabilities already, which saves a `log_softmax`.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples, infinite if a true class has probability 0.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> probs = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
        >>> cross_entropy(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.4581, dtype=torch.float64)
    """
    check_num_classes(num_classes)
    samples = flatten_samples(
        preds,
        target,
        num_classes=num_classes,
        scale=entropy_scale(from_logits=from_logits, normalized=normalized),
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    raise_first(samples.find_faults())
    sums = entropy_sums(samples)
    return sums.entropy / sums.samples


def entropy_scale(*, from_logits: bool, normalized: bool) -> Scale:
    """Return the scale of the scores; refuse probabilities that are said to be log-probabilities."""
    if normalized and not from_logits:
        raise ValueError("normalized=True needs from_logits=True: it says that the logits are log-probabilities.")
    return "log_probs" if normalized else "logits" if from_logits else "probs"


def entropy_sums(samples: Samples) -> EntropySums:
    """Sum -log of the probability of the true class, without looking at a value."""
    weight = samples.labels.weight
    if samples.scale == "probs":
        log_prob = samples.of_true_class(samples.scores).to(weight.dtype).log()
    else:
        log_prob = samples.of_true_class(samples.log_probs()).to(weight.dtype)
    weighed = torch.where(weight > 0, -log_prob * weight, 0.0)  # a weight of 0 would not cancel an infinity
    return EntropySums(samples.labels.sum(weighed), samples.labels.sum(weight))
