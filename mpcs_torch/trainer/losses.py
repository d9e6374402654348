"""Losses by name; a config sets their keyword-only arguments."""

from collections.abc import Callable
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.learning import ConcernLoss, GeneralizedMeanLoss, SoftmaxMarginLoss

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1)]
Loss = Callable[[Tensor, Tensor], Tensor]
"""Of logits (N, C) and labels (N,): the mean over the batch."""


def cross_entropy(concern: ConcernSpec, *, label_smoothing: Share = 0.0) -> Loss:  # noqa: ARG001  # blind to concern
    """Make a `torch.nn.CrossEntropyLoss`."""
    return nn.CrossEntropyLoss(label_smoothing=label_smoothing)


def concern_loss(
    concern: ConcernSpec, *, concern_share: Share = 0.5, label_smoothing: Share = 0.0, released: Weight | None = None
) -> Loss:
    """Make a `ConcernLoss` with the concern of the run's score, or with another weight for its released pairs."""
    return ConcernLoss(_learnt(concern, released), concern_share=concern_share, label_smoothing=label_smoothing)


def softmax_margin(
    concern: ConcernSpec,
    *,
    margin: Annotated[float, Field(ge=0)] = 1.0,
    label_smoothing: Share = 0.0,
    released: Weight | None = None,
) -> Loss:
    """Make a `SoftmaxMarginLoss` with the concern of the run's score, or with another weight for its released pairs."""
    return SoftmaxMarginLoss(_learnt(concern, released), margin=margin, label_smoothing=label_smoothing)


def generalized_mean(concern: ConcernSpec, *, power: float) -> Loss:  # noqa: ARG001  # blind to concern
    """Make a `GeneralizedMeanLoss`."""
    return GeneralizedMeanLoss(power)


def _learnt(concern: ConcernSpec, released: float | None) -> ConcernSpec | Tensor:
    return concern if released is None else torch.where(concern.released(), released, concern.matrix())


LOSSES: dict[str, Callable[..., Loss]] = {
    "cross_entropy": cross_entropy,
    "concern": concern_loss,
    "softmax_margin": softmax_margin,
    "generalized_mean": generalized_mean,
}
"""Called with the `ConcernSpec` of the run."""
