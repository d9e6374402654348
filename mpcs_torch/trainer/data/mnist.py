"""MNIST, from a data root in torchvision's layout, or downloaded there by torchvision."""

from pathlib import Path

from torch import Tensor
from torchvision.datasets import MNIST

from mpcs_torch.trainer.data.splits import DataError, DataRequest, DataSplits


def load_mnist(request: DataRequest) -> DataSplits:
    """MNIST: (N, 1, 28, 28) grey values 0 to 1, 60 000 training and 10 000 test images of 10 classes.

    Raises:
        DataError: If the files are neither in the data root nor to be downloaded.
    """
    train_inputs, train_labels = _part(request.root, train=True)
    test_inputs, test_labels = _part(request.root, train=False)
    return DataSplits(train_inputs, train_labels, test_inputs, test_labels, tuple(map(str, range(10))))


def _part(root: Path, *, train: bool) -> tuple[Tensor, Tensor]:
    try:
        part = MNIST(root, train=train)
    except RuntimeError:  # not there yet
        try:
            part = MNIST(root, train=train, download=True)
        except (RuntimeError, OSError) as error:
            message = f"MNIST is not in {root / 'MNIST' / 'raw'} and cannot be downloaded there: {error}"
            raise DataError(message) from error
    return part.data.unsqueeze(1).float().div(255), part.targets
