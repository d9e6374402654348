"""The paper's multi-layer perceptron."""

from collections.abc import Sequence
from math import prod
from typing import Annotated

from pydantic import Field
from torch import nn

Width = Annotated[int, Field(gt=0, le=1_000_000)]
"""`MAX_PARAMETERS` is what limits wide models; this keeps sizes within 64 bits."""


class MLP(nn.Sequential):
    """One hidden layer of ReLUs over the flattened input: (N, *input_shape) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, hidden: Width = 32) -> None:
        super().__init__(nn.Flatten(), nn.Linear(prod(input_shape), hidden), nn.ReLU(), nn.Linear(hidden, num_classes))
