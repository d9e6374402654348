"""Losses, optimizers and learning-rate schedulers by name; a config sets their keyword arguments."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    ReduceLROnPlateau,
)

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.measure import Direction
from mpcs_torch.learning import MPCSLR, ConcernLoss, GeneralizedMeanLoss, SoftmaxMarginLoss
from mpcs_torch.learning.recommended import margin_loss
from mpcs_torch.trainer.config.section import (
    Below1,
    Fraction,
    NotNegative,
    Number,
    Positive,
    Share,
)

Weight = Annotated[Number, Field(gt=0, le=1)]
Loss = Callable[[Tensor, Tensor], Tensor]
"""A function of logits (N, C) and labels (N,) that returns the mean loss of the batch, a scalar."""


def cross_entropy(concern: ConcernSpec, *, label_smoothing: Share = 0.0) -> Loss:  # noqa: ARG001  # ignores the concern
    """Make a `torch.nn.CrossEntropyLoss`."""
    return nn.CrossEntropyLoss(label_smoothing=label_smoothing)


def concern_loss(
    concern: ConcernSpec,
    *,
    concern_share: Share = 0.5,
    label_smoothing: Share = 0.0,
    released: Weight | None = None,
) -> Loss:
    """Make a `ConcernLoss`. ``released`` is the weight of tolerable errors; by default, it is that in ``concern``."""
    return ConcernLoss(
        _penalties(concern, released),
        concern_share=concern_share,
        label_smoothing=label_smoothing,
    )


def generalized_mean(concern: ConcernSpec, *, power: Number) -> Loss:  # noqa: ARG001  # ignores the concern
    """Make a `GeneralizedMeanLoss`."""
    return GeneralizedMeanLoss(power)


def softmax_margin(
    concern: ConcernSpec,
    *,
    margin: NotNegative = 1.0,
    label_smoothing: Share = 0.0,
    released: Weight | None = None,
) -> Loss:
    """Make a `SoftmaxMarginLoss`. ``released`` is the weight of tolerable errors; by default, that in ``concern``."""
    return SoftmaxMarginLoss(
        _penalties(concern, released), margin=margin, label_smoothing=label_smoothing
    )


def recommended(
    concern: ConcernSpec,
    *,
    margin: NotNegative = 4.0,
    label_smoothing: Share = 0.0,
) -> Loss:
    """Make the `SoftmaxMarginLoss` of the recommended recipe, with half the margin for tolerable (released) errors."""
    return margin_loss(concern, margin, label_smoothing)


def _penalties(concern: ConcernSpec, released: float | None) -> ConcernSpec | Tensor:
    if released is None:
        return concern
    return torch.where(concern.released(), released, concern.mpcs_weights())


LOSSES: dict[str, Callable[..., Loss]] = {
    "cross_entropy": cross_entropy,
    "concern": concern_loss,
    "softmax_margin": softmax_margin,
    "recommended": recommended,
    "generalized_mean": generalized_mean,
}
"""The functions that make losses, by name. Each takes the `ConcernSpec` of the run, and keywords from the config."""


Weights = Iterator[nn.Parameter]


def adam(
    weights: Weights, learning_rate: float, *, weight_decay: NotNegative = 0.0
) -> Optimizer:
    """Make a `torch.optim.Adam`."""
    return Adam(weights, learning_rate, weight_decay=weight_decay)


def adamw(
    weights: Weights, learning_rate: float, *, weight_decay: NotNegative = 0.01
) -> Optimizer:
    """Make a `torch.optim.AdamW`."""
    return AdamW(weights, learning_rate, weight_decay=weight_decay)


def sgd(
    weights: Weights,
    learning_rate: float,
    *,
    momentum: Below1 = 0.0,
    nesterov: bool = False,
    weight_decay: NotNegative = 0.0,
) -> Optimizer:
    """Make a `torch.optim.SGD`."""
    return SGD(
        weights,
        learning_rate,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
    )


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": adam, "adamw": adamw, "sgd": sgd}
"""The functions that make optimizers, by name. Each takes the model's weights, the learning rate, and keywords."""

Directions = Mapping[str, Direction]
"""Whether each metric of the run is better when lower ("min") or higher ("max"), by name."""
Step = Callable[[Mapping[str, float]], None]
"""A function that steps a learning-rate scheduler; its argument has the metrics of an epoch. If it has ``state_dict``
and ``load_state_dict``, its state is saved with the run."""


class EpochStep:
    """A callable that steps ``scheduler`` after each epoch; if ``score`` names a metric, with the metric's value."""

    def __init__(self, scheduler: LRScheduler, score: str | None = None) -> None:
        self.scheduler = scheduler
        self.score = score
        self.state_dict = scheduler.state_dict
        self.load_state_dict = scheduler.load_state_dict

    def __call__(self, values: Mapping[str, float]) -> None:
        """Step the scheduler after an epoch; ``values`` are the metrics of the epoch."""
        if self.score is None:
            self.scheduler.step()
        else:
            self.scheduler.step(values[self.score])  # type: ignore[arg-type]


def cosine(
    optimizer: Optimizer,
    epochs: int,
    directions: Directions,  # noqa: ARG001  # all schedulers take the same arguments
    *,
    warmup_epochs: NonNegativeInt = 0,
) -> Step:
    """Make a scheduler: a cosine down to 0, multiplied by a linear ramp during the first ``warmup_epochs``."""
    parts: list[LRScheduler] = [CosineAnnealingLR(optimizer, epochs)]
    if warmup_epochs:
        parts.append(
            LinearLR(optimizer, 1 / (warmup_epochs + 1), total_iters=warmup_epochs)
        )
    return EpochStep(ChainedScheduler(parts))


def plateau(
    optimizer: Optimizer,
    _epochs: int,  # all schedulers take the same arguments
    directions: Directions,
    *,
    score: str = "mpcs",
    factor: Fraction = 0.5,
    patience: NonNegativeInt = 3,
) -> Step:
    """Make a scheduler that multiplies the learning rate by ``factor`` when the metric ``score`` stops improving."""
    mode = directions[score]
    scheduler = ReduceLROnPlateau(optimizer, mode, factor=factor, patience=patience)
    return EpochStep(scheduler, score)


def mpcs_lr(
    optimizer: Optimizer,
    _epochs: int,
    directions: Directions,  # noqa: ARG001
    *,
    score: str = "mpcs",
    power: NotNegative = 1.0,
    reference: Positive | None = None,
    lowest: Share = 0.0,
    highest: Annotated[Number, Field(ge=1, le=1e6)] = 1.0,
    smoothing: Below1 = 0.0,
    warmup_steps: NonNegativeInt = 0,
) -> Step:
    """Make an `MPCSLR`: the learning rate follows the metric ``score``, of which lower values must be better."""
    scheduler = MPCSLR(
        optimizer,
        power=power,
        reference=reference,
        lowest=lowest,
        highest=highest,
        smoothing=smoothing,
        warmup_steps=warmup_steps,
    )
    return EpochStep(scheduler, score)


SCHEDULERS: dict[str, Callable[..., Step]] = {
    "cosine": cosine,
    "plateau": plateau,
    "mpcs_lr": mpcs_lr,
}
"""The functions that make schedulers. Each takes the optimizer, the number of epochs and the `Directions`."""
