"""The networks of the MPCS paper by name: MLP, CNN, RNN and LSTM; a config sets their keyword arguments."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from pydantic import PositiveInt
from torch import Tensor, nn

from mpcs_torch.errors import require


class MLP(nn.Sequential):
    """A network with one hidden layer (ReLU), from inputs (N, *input_shape) to logits (N, num_classes)."""

    def __init__(
        self, input_shape: Sequence[int], num_classes: int, *, hidden: PositiveInt = 32
    ) -> None:
        super().__init__(
            nn.Flatten(),
            nn.Linear(prod(input_shape), hidden),
            nn.ReLU(),
            nn.Linear(hidden, num_classes),
        )


class DigitsCNN(nn.Sequential):
    """The network CNN-D of the MPCS paper, for DIGITS: from images (N, 1, 8, 8) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int) -> None:
        _check_shape(input_shape, (1, 8, 8))
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
    """The network CNN-M of the MPCS paper, for MNIST: from images (N, 1, 28, 28) to logits (N, num_classes)."""

    def __init__(self, input_shape: Sequence[int], num_classes: int) -> None:
        _check_shape(input_shape, (1, 28, 28))
        super().__init__(*two_convolutions(28, num_classes))


def two_convolutions(side: int, num_classes: int) -> list[nn.Module]:
    """Return the layers of CNN-M for images (N, 1, side, side), whose side each convolution halves."""
    return [
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (side // 4) ** 2, 16),
        nn.ReLU(),
        nn.Linear(16, num_classes),
    ]


def _check_shape(shape: Sequence[int], needed: tuple[int, ...]) -> None:
    require(tuple(shape) == needed, "shape", "inputs", tuple(shape), shape=needed)


class Recurrent(nn.Module):
    """A recurrent network and a linear layer on its last step: from (N, steps, features) to logits (N, num_classes)."""

    def __init__(
        self,
        kind: type[nn.RNN | nn.LSTM],
        input_shape: Sequence[int],
        num_classes: int,
        *,
        hidden: PositiveInt,
        layers: PositiveInt,
    ) -> None:
        super().__init__()
        shape = tuple(input_shape)
        require(len(shape) == 2, "shape", "inputs", shape, shape="(steps, features)")
        self.recurrent = kind(shape[1], hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits (N, num_classes)."""
        states, _ = self.recurrent(inputs)
        logits: Tensor = self.output(states[:, -1])
        return logits


MODELS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "cnn_d": DigitsCNN,
    "cnn_m": MNISTCNN,
    "rnn": partial(Recurrent, nn.RNN, hidden=256, layers=3),
    "lstm": partial(Recurrent, nn.LSTM, hidden=128, layers=1),
}
"""The models by name. Each takes the shape of one input, the number of classes, and keywords from the config."""
