"""MNIST, from a data root in torchvision's layout."""

from pathlib import Path

from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError, printable
from mpcs_torch.trainer.data.splits import DataSplits, Split


def load_mnist(root: Path, *, rows: bool = False) -> DataSplits:
    """Load MNIST: grey values 0 to 1, 60 000 training and 10 000 test images of 10 classes.

    Args:
        root: The data root.
        rows: Whether an image is a series of its rows, (28, 28), rather than (1, 28, 28).

    Raises:
        DataError: If a file is missing or broken.
    """
    train, test = (_split(root, is_train=is_train, rows=rows) for is_train in (True, False))
    return DataSplits(train, test, tuple(map(str, range(10))))


def _split(root: Path, *, is_train: bool, rows: bool) -> Split:
    folder = root / "MNIST" / "raw"
    try:
        dataset = MNIST(root, train=is_train)
    except Exception as error:  # torchvision raises many kinds
        place = printable(str(folder))
        raise DataError(f"MNIST is missing or broken in {place} (mpcs data get mnist downloads it)") from error
    inputs = dataset.data.float().div(255)
    return Split(inputs if rows else inputs.unsqueeze(1), dataset.targets)
