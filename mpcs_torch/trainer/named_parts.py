"""Losses, optimizers and learning-rate schedulers by name; a config sets their keyword-only arguments."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, LinearLR, LRScheduler, ReduceLROnPlateau

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.learning import MPCSLR, ConcernLoss, GeneralizedMeanLoss, SoftmaxMarginLoss
from mpcs_torch.learning.recommended import margin_loss

Portion = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1)]
Loss = Callable[[Tensor, Tensor], Tensor]
"""A function of logits (N, C) and labels (N,) that returns the mean over the batch."""


def cross_entropy(concern: ConcernSpec, *, label_smoothing: Portion = 0.0) -> Loss:  # noqa: ARG001  # ignores the concern
    """Make a `torch.nn.CrossEntropyLoss`."""
    return nn.CrossEntropyLoss(label_smoothing=label_smoothing)


def concern_loss(
    concern: ConcernSpec,
    *,
    concern_share: Portion = 0.5,
    label_smoothing: Portion = 0.0,
    released: Weight | None = None,
) -> Loss:
    """Make a `ConcernLoss` from ``concern``; ``released``, if given, is the weight of released pairs."""
    return ConcernLoss(_penalties(concern, released), concern_share=concern_share, label_smoothing=label_smoothing)


def generalized_mean(concern: ConcernSpec, *, power: float) -> Loss:  # noqa: ARG001  # ignores the concern
    """Make a `GeneralizedMeanLoss`."""
    return GeneralizedMeanLoss(power)


def softmax_margin(
    concern: ConcernSpec,
    *,
    margin: Annotated[float, Field(ge=0)] = 1.0,
    label_smoothing: Portion = 0.0,
    released: Weight | None = None,
) -> Loss:
    """Make a `SoftmaxMarginLoss` from ``concern``; ``released``, if given, is the weight of released pairs."""
    return SoftmaxMarginLoss(_penalties(concern, released), margin=margin, label_smoothing=label_smoothing)


def recommended(
    concern: ConcernSpec, *, margin: Annotated[float, Field(ge=0)] = 4.0, label_smoothing: Portion = 0.0
) -> Loss:
    """Make a loss of the recommended recipe: a `SoftmaxMarginLoss` without a margin for released pairs."""
    return margin_loss(concern, margin, label_smoothing)


def _penalties(concern: ConcernSpec, released: float | None) -> ConcernSpec | Tensor:
    return concern if released is None else torch.where(concern.released(), released, concern.matrix())


LOSSES: dict[str, Callable[..., Loss]] = {
    "cross_entropy": cross_entropy,
    "concern": concern_loss,
    "softmax_margin": softmax_margin,
    "recommended": recommended,
    "generalized_mean": generalized_mean,
}
"""The functions that make losses, by name; each is called with the `ConcernSpec` of the run."""


NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Below1 = Annotated[float, Field(ge=0, lt=1)]
Weights = Iterator[nn.Parameter]


def adam(weights: Weights, learning_rate: float, *, weight_decay: NotNegative = 0.0) -> Optimizer:
    """Make a `torch.optim.Adam`."""
    return Adam(weights, lr=learning_rate, weight_decay=weight_decay)


def adamw(weights: Weights, learning_rate: float, *, weight_decay: NotNegative = 0.01) -> Optimizer:
    """Make a `torch.optim.AdamW`."""
    return AdamW(weights, lr=learning_rate, weight_decay=weight_decay)


def sgd(
    weights: Weights,
    learning_rate: float,
    *,
    momentum: Below1 = 0.0,
    nesterov: bool = False,
    weight_decay: NotNegative = 0.0,
) -> Optimizer:
    """Make a `torch.optim.SGD`."""
    return SGD(weights, lr=learning_rate, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": adam, "adamw": adamw, "sgd": sgd}
"""The functions that make optimizers, by name; each is called with the weights of the model and the learning rate."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Directions = Mapping[str, Direction]
"""The direction of each metric of the run."""
Step = Callable[[Mapping[str, float]], None]
"""A function that steps a scheduler with the values of an epoch. If it has ``state_dict`` and ``load_state_dict``, its
state, of tensors and plain values, is saved with the run."""


class EpochStep:
    """Step a torch ``scheduler`` with the value of the metric ``score``, or without a value if ``score`` is None."""

    def __init__(self, scheduler: LRScheduler, score: str | None = None) -> None:
        self.scheduler, self.score = scheduler, score
        self.state_dict, self.load_state_dict = scheduler.state_dict, scheduler.load_state_dict

    def __call__(self, values: Mapping[str, float]) -> None:
        """Step the scheduler after an epoch; ``values`` are the metrics of the epoch."""
        self.scheduler.step(*([] if self.score is None else [values[self.score]]))  # type: ignore[arg-type]


def cosine(
    optimizer: Optimizer,
    epochs: int,
    directions: Directions,  # noqa: ARG001  # all schedulers take the same arguments
    *,
    warmup_epochs: NonNegativeInt = 0,
) -> Step:
    """Anneal the learning rate to 0 along a cosine over the epochs of the run, after a linear warmup."""
    parts: list[LRScheduler] = [CosineAnnealingLR(optimizer, T_max=epochs)]
    if warmup_epochs:
        parts.append(LinearLR(optimizer, start_factor=1 / (warmup_epochs + 1), total_iters=warmup_epochs))
    return EpochStep(ChainedScheduler(parts))


def plateau(
    optimizer: Optimizer,
    _epochs: int,  # all schedulers take the same arguments
    directions: Directions,
    *,
    score: str = "mpcs",
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    patience: NonNegativeInt = 3,
) -> Step:
    """Lower the learning rate when the metric ``score`` of the epochs stops improving."""
    scheduler = ReduceLROnPlateau(optimizer, mode=directions[score], factor=factor, patience=patience)
    return EpochStep(scheduler, score)


def mpcs_lr(
    optimizer: Optimizer,
    _epochs: int,
    directions: Directions,  # noqa: ARG001
    *,
    score: str = "mpcs",
    power: NotNegative = 1.0,
    reference: Positive | None = None,
    lowest: Portion = 0.0,
    highest: Annotated[float, Field(ge=1, le=1e6)] = 1.0,
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    warmup_steps: NonNegativeInt = 0,
) -> Step:
    """Scale the learning rate by `MPCSLR` with ``score``, a metric of the epoch that is better when lower."""
    settings: dict[str, Any] = {"power": power, "smoothing": smoothing, "warmup_steps": warmup_steps}
    settings |= {"reference": reference, "lowest": lowest, "highest": highest}
    return EpochStep(MPCSLR(optimizer, **settings), score)


SCHEDULERS: dict[str, Callable[..., Step]] = {"cosine": cosine, "plateau": plateau, "mpcs_lr": mpcs_lr}
"""The functions that make schedulers; each is called with the optimizer, the number of epochs and the directions.

A function whose rates do not depend on the number of epochs names it ``_epochs``. Its runs can then be extended."""
