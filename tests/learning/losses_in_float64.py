"""The losses as functions, with weights in float64, which the modules round to float32."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.concern import losses
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.logits import LossSettings, loss_batch
from mpcs_torch.functional.probability import scores


def concern_loss(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    concern: Tensor | None = None,
    concern_share: float = 0.5,
    **settings: Any,
) -> Tensor:
    penalties = (
        None if concern is None else losses.penalty_matrix(without_diagonal(concern))
    )
    batch = loss_batch(logits, target, LossSettings(**settings), sample_weight)
    return losses.concern_loss(batch, penalties, concern_share)


def softmax_margin_loss(
    logits: Tensor, target: Tensor, *, concern: Tensor, margin: float = 1.0, **settings: Any
) -> Tensor:
    batch = loss_batch(logits, target, LossSettings(**settings), None)
    return losses.softmax_margin_loss(batch, without_diagonal(concern), margin)


def generalized_mean_loss(
    logits: Tensor, target: Tensor, *, power: float, **settings: Any
) -> Tensor:
    return scores.generalized_mean_loss(
        loss_batch(logits, target, LossSettings(**settings), None), power
    )
