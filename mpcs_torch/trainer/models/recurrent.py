"""The paper's recurrent networks: an RNN or LSTM, and a linear layer on its last step."""

from collections.abc import Sequence

from pydantic import PositiveInt
from torch import Tensor, nn


class _LastStep(nn.Module):
    """From (N, steps, features) to logits (N, num_classes); the initial state is zero."""

    def __init__(self, recurrent: nn.RNNBase, num_classes: int) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.output = nn.Linear(recurrent.hidden_size, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        states, _ = self.recurrent(inputs)
        logits: Tensor = self.output(states[:, -1])
        return logits


def rnn(
    input_shape: Sequence[int], num_classes: int, *, hidden: PositiveInt = 256, layers: PositiveInt = 3
) -> nn.Module:
    """Make an Elman network (tanh) over (steps, features)."""
    return _LastStep(nn.RNN(_features(input_shape), hidden, layers, batch_first=True), num_classes)


def lstm(
    input_shape: Sequence[int], num_classes: int, *, hidden: PositiveInt = 128, layers: PositiveInt = 1
) -> nn.Module:
    """Make an LSTM over (steps, features)."""
    return _LastStep(nn.LSTM(_features(input_shape), hidden, layers, batch_first=True), num_classes)


def _features(input_shape: Sequence[int]) -> int:
    if len(input_shape) != 2:
        rule = "a recurrent model takes inputs of shape (steps, features)"
        raise ValueError(f"{rule}, but the data has {tuple(input_shape)}.")
    return input_shape[1]
