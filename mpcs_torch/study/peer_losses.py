"""Losses that others propose for errors of unequal cost, as makers for a run config: each takes a `ConcernSpec`."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.trainer.by_name import Loss, Weight


def cost_weighted(concern: ConcernSpec, *, released: Weight) -> Loss:
    """Make a cross entropy that weighs each true class by the mean cost of mistaking it."""
    row_cost = _costs(concern, released).sum(dim=1)
    return nn.CrossEntropyLoss(weight=row_cost / row_cost.mean())


def soft_labels(concern: ConcernSpec, *, sharpness: PositiveFloat, released: Weight) -> Loss:
    """Make a cross entropy against labels that fall off with the cost of the error.

    References:
        Bertinetto, Mueller, Tertikas, Samangooei, Lord: Making Better Mistakes, CVPR 2020: the label of class j for
        true class i is proportional to exp(-sharpness * cost[i, j]).
    """
    labels = torch.softmax(-sharpness * _costs(concern, released), dim=1)
    return lambda logits, target: nn.functional.cross_entropy(logits, labels.to(logits)[target])


def focal(concern: ConcernSpec, *, gamma: NonNegativeFloat) -> Loss:  # noqa: ARG001  # blind to concern
    """Make a focal loss: cross entropy times (1 - p)^gamma for the probability p of the true class.

    References:
        Lin, Goyal, Girshick, He, Dollar: Focal Loss for Dense Object Detection, ICCV 2017, Eq. 4.
    """

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        log_p = -nn.functional.cross_entropy(logits, target, reduction="none")
        return (-((1 - log_p.exp()) ** gamma) * log_p).mean()

    return loss


def with_expected_cost(concern: ConcernSpec, *, share: NonNegativeFloat, released: Weight) -> Loss:
    """Make a cross entropy to which a multiple of the expected cost under the model's own probabilities is added.

    References:
        Galdran, Dolz, Chakor, Lombaert, Ben Ayed: Cost-Sensitive Regularization for Diabetic Retinopathy Grading,
        MICCAI 2020.
    """
    costs = _costs(concern, released)

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        expected = (logits.softmax(dim=1) * costs.to(logits)[target]).sum(dim=1).mean()
        return nn.functional.cross_entropy(logits, target) + share * expected

    return loss


def _costs(concern: ConcernSpec, released: float) -> Tensor:
    return without_diagonal(torch.where(concern.released(), released, concern.matrix())).float()
