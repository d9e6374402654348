"""The models of the paper, by name."""

from collections.abc import Callable, Sequence
from math import prod

from pydantic import PositiveInt
from torch import Tensor, nn


class MLP(nn.Sequential):
    """A network with one hidden layer of ReLUs on the flattened input: (N, *input_shape) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, hidden: PositiveInt = 32) -> None:
        super().__init__(nn.Flatten(), nn.Linear(prod(input_shape), hidden), nn.ReLU(), nn.Linear(hidden, num_classes))


class DigitsCNN(nn.Sequential):
    """CNN-D, for DIGITS: (N, 1, 8, 8) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int) -> None:
        _check_shape(input_shape, (1, 8, 8), "cnn_d")
        super().__init__(
            nn.Conv2d(1, 25, 2),
            nn.BatchNorm2d(25),
            nn.ReLU(),
            nn.MaxPool2d(1, stride=2),
            nn.Conv2d(25, 50, 1),
            nn.BatchNorm2d(50),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(200, 1024),
            nn.ReLU(),
            nn.Linear(1024, 128),
            nn.ReLU(),
            nn.Linear(128, num_classes),
        )


class MNISTCNN(nn.Sequential):
    """CNN-M, for MNIST: (N, 1, 28, 28) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int) -> None:
        _check_shape(input_shape, (1, 28, 28), "cnn_m")
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(1568, 16),
            nn.ReLU(),
            nn.Linear(16, num_classes),
        )


def _check_shape(shape: Sequence[int], needed: tuple[int, ...], name: str) -> None:
    if tuple(shape) != needed:
        raise ValueError(f"model {name} takes inputs of shape {needed}, but the data has {tuple(shape)}.")


class _LastStep(nn.Module):
    """A recurrent network and a linear layer on its last step: (N, steps, features) to logits (N, num_classes)."""

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


MODELS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "cnn_d": DigitsCNN,
    "cnn_m": MNISTCNN,
    "rnn": rnn,
    "lstm": lstm,
}
"""The models by name; each is called with the shape of one input, the number of classes and the config's keywords."""
