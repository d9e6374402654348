"""Models by name: one file per family, one line here each."""

from collections.abc import Callable, Sequence

from torch import nn

from mpcs_torch.trainer.models.mlp import MLP

Builder = Callable[[Sequence[int], int, int], nn.Module]
"""From the shape of one input, the width of the hidden layer and the number of classes."""

MODELS: dict[str, Builder] = {"mlp": MLP}

__all__ = ["MODELS", "Builder"]
