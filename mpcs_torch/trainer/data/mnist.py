"""MNIST, from a data root in torchvision's layout."""

from pathlib import Path

from torchvision.datasets import MNIST

from mpcs_torch.trainer.data.splits import DataError, DataSplits, Split


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
    try:
        found = MNIST(root, train=is_train)
    except (RuntimeError, OSError, ValueError, AssertionError) as error:  # torchvision asserts the form of a file
        folder = root / "MNIST" / "raw"
        raise DataError(f"MNIST is missing or broken in {folder} (mpcs data get mnist downloads it)") from error
    images = found.data.float().div(255)
    return Split(images if rows else images.unsqueeze(1), found.targets)
