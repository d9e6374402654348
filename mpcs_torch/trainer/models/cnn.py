"""The paper's two convolutional networks."""

from collections.abc import Sequence

from torch import nn


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
