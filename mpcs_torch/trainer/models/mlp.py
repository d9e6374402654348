"""The paper's multi-layer perceptron."""

from collections.abc import Sequence
from math import prod

from pydantic import PositiveInt
from torch import nn


class MLP(nn.Sequential):
    """One hidden layer of ReLUs over the flattened input: (N, *input_shape) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, hidden: PositiveInt = 32) -> None:
        super().__init__(nn.Flatten(), nn.Linear(prod(input_shape), hidden), nn.ReLU(), nn.Linear(hidden, num_classes))
