"""Optimizers by name; a config sets their keyword-only arguments."""

from collections.abc import Callable, Iterator
from typing import Annotated

from pydantic import Field
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
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
    momentum: Share = 0.0,
    nesterov: bool = False,
    weight_decay: NotNegative = 0.0,
) -> Optimizer:
    """Make a `torch.optim.SGD`."""
    return SGD(weights, lr=learning_rate, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": adam, "adamw": adamw, "sgd": sgd}
"""Called with the weights of the model and the learning rate."""
