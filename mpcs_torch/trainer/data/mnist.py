"""MNIST, from a data root in torchvision's layout."""

from pathlib import Path

from torch import Tensor
from torchvision.datasets import MNIST

from mpcs_torch.trainer.data.splits import DataError, DataSplits


def load_mnist(root: Path, *, rows: bool = False) -> DataSplits:
    """MNIST: grey values 0 to 1, 60 000 training and 10 000 test images of 10 classes.

    Args:
        root: The data root.
        rows: Whether an image is a series of its rows, (28, 28), rather than (1, 28, 28).

    Raises:
        DataError: If a file is missing or broken.
    """
    train_inputs, train_labels = _part(root, train=True)
    test_inputs, test_labels = _part(root, train=False)
    if rows:
        train_inputs, test_inputs = train_inputs.squeeze(1), test_inputs.squeeze(1)
    return DataSplits(train_inputs, train_labels, test_inputs, test_labels, tuple(map(str, range(10))))


def _part(root: Path, *, train: bool) -> tuple[Tensor, Tensor]:
    try:
        part = MNIST(root, train=train)
    except (RuntimeError, OSError, ValueError, AssertionError) as error:  # torchvision asserts the form of a file
        folder = root / "MNIST" / "raw"
        raise DataError(f"MNIST is missing or broken in {folder} (mpcs data get mnist downloads it)") from error
    return part.data.unsqueeze(1).float().div(255), part.targets
