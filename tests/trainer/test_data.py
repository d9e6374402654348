"""Data sets: shapes, ranges, and a clear word where one is missing."""

from pathlib import Path

import pytest
import torch
from torchvision.datasets import MNIST

from mpcs_torch.trainer.data import DATASETS, DataError, DataRequest, DataSplits


def load(name: str, root: Path = Path(), split_seed: int = 0) -> DataSplits:
    return DATASETS[name](DataRequest(root, test_fraction=0.25, split_seed=split_seed))


@pytest.mark.parametrize(
    ("name", "shape", "train", "test", "classes"),
    [
        ("iris", (4,), 112, 38, 3),
        ("digits", (1, 8, 8), 1347, 450, 10),
        ("breast_cancer", (30,), 426, 143, 2),
    ],
)
def test_scikit_learn_sets_are_split(name: str, shape: tuple[int, ...], train: int, test: int, classes: int) -> None:
    data = load(name)
    assert data.train_inputs.shape == (train, *shape)
    assert data.test_inputs.shape == (test, *shape)
    assert data.train_inputs.dtype == torch.float32
    assert data.train_labels.unique().tolist() == list(range(classes))
    assert len(data.class_names) == classes


def test_a_split_follows_its_seed_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, same, other = load("iris"), load("iris"), load("iris", split_seed=1)
    assert torch.equal(first.train_inputs, same.train_inputs)
    assert not torch.equal(first.train_inputs, other.train_inputs)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_split_without_training_samples_is_refused() -> None:
    with pytest.raises(DataError, match=r"data.test_fraction 0.9999 cannot split 150 samples"):
        DATASETS["iris"](DataRequest(Path(), test_fraction=0.9999, split_seed=0))


def test_mnist_is_read_from_the_data_root(data_root: Path) -> None:
    data = load("mnist", data_root)
    assert data.train_inputs.shape == (60000, 1, 28, 28)
    assert data.test_inputs.shape == (10000, 1, 28, 28)
    assert data.train_inputs.aminmax() == (0, 1)


def test_mnist_without_files_or_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    with pytest.raises(DataError, match=r"MNIST is not in .*raw and cannot be downloaded there"):
        load("mnist", tmp_path)
