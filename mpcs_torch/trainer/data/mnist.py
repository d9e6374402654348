"""MNIST, from a data root in torchvision's layout."""

from pathlib import Path

import torch
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
        images, labels = dataset.data, dataset.targets
        if images.dtype != torch.uint8 or images.shape != (len(labels), 28, 28) or not len(labels):
            raise ValueError(f"images must be 28 x 28, one for each of {len(labels)} labels, but are {images.shape}")
        if labels.min() < 0 or labels.max() > 9:
            raise ValueError("labels must be from 0 to 9")
    except Exception as error:  # torchvision parses the files without checks of its own, apart from assertions
        place = printable(str(folder))
        raise DataError(f"MNIST is missing or broken in {place} (mpcs data get mnist downloads it)") from error
    inputs = images.float().div(255)
    return Split(inputs if rows else inputs.unsqueeze(1), labels)
