"""Data sets: shapes, ranges, and a clear word where one is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data import DATASETS, DataSplits
from tests.refused import Refused

MNIST_FILES = [f"MNIST/raw/{archive.removesuffix('.gz')}" for archive, _ in MNIST.resources]


def load(name: str, root: Path = Path(), **arguments: Any) -> DataSplits:
    return DATASETS[name](root, **arguments)


@pytest.mark.parametrize(
    ("name", "shape", "train", "test", "classes"),
    [
        ("iris", (4,), 112, 38, 3),
        ("digits", (1, 8, 8), 1347, 450, 10),
        ("breast_cancer", (30,), 426, 143, 2),
    ],
)
def test_scikit_learn_sets_are_split(
    name: str, shape: tuple[int, ...], train: int, test: int, classes: int
) -> None:
    data = load(name)
    assert data.train.inputs.shape == (train, *shape)
    assert data.test.inputs.shape == (test, *shape)
    assert data.train.inputs.dtype == torch.float32
    assert data.train.labels.unique().tolist() == list(range(classes))
    assert len(data.class_names) == classes


def test_unused_classes_add_names_and_nothing_else() -> None:
    data, more = load("breast_cancer"), load("breast_cancer", unused_classes=8)
    assert torch.equal(data.train.inputs, more.train.inputs)
    assert len(more.class_names) == len(set(more.class_names)) == 10


def test_a_split_follows_its_seed_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, same, other = load("iris"), load("iris"), load("iris", split_seed=1)
    assert torch.equal(first.train.inputs, same.train.inputs)
    assert not torch.equal(first.train.inputs, other.train.inputs)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_split_without_training_samples_is_refused() -> None:
    with Refused("cannot_split", raises=DataError, number=150):
        load("iris", test_fraction=0.9999)


def test_mnist_is_read_from_the_data_root(data_root: Path) -> None:
    data = load("mnist", data_root)
    assert data.train.inputs.shape == (60000, 1, 28, 28)
    assert data.test.inputs.shape == (10000, 1, 28, 28)
    assert data.train.inputs.aminmax() == (0, 1)


def test_mnist_as_rows_is_the_same_images(data_root: Path) -> None:
    rows = load("mnist", data_root, rows=True)
    assert rows.train.inputs.shape == (60000, 28, 28)
    assert torch.equal(rows.test.inputs, load("mnist", data_root).test.inputs[:, 0])


def test_add_trajectories_are_read_from_the_data_root(data_root: Path) -> None:
    data = load("add", data_root)
    assert data.train.inputs.shape == (2400, 40, 2)
    assert data.test.inputs.shape == (600, 40, 2)
    assert data.train.inputs.dtype == torch.float32
    assert data.train.labels.unique().tolist() == [0, 1, 2]


def test_a_missing_add_file_is_named(tmp_path: Path) -> None:
    place = f"{tmp_path / 'ADD'}: X_train.npy and Y_train.npy"
    with Refused("add_arrays", place, raises=DataError):
        load("add", tmp_path)


def test_mnist_without_files_says_how_to_get_them(tmp_path: Path) -> None:
    with Refused("mnist", raises=DataError, folder=str(tmp_path / "MNIST" / "raw")):
        load("mnist", tmp_path)
    (tmp_path / "MNIST" / "raw").mkdir(parents=True)
    for file in MNIST_FILES:
        (tmp_path / file).write_bytes(b"half a file")
    with Refused("mnist", raises=DataError):
        load("mnist", tmp_path)


def idx(array: "np.ndarray[Any, Any]") -> bytes:
    return (
        bytes([0, 0, 8, array.ndim])
        + b"".join(size.to_bytes(4, "big") for size in array.shape)
        + array.tobytes()
    )


def write_mnist(
    root: Path, images: tuple[int, ...] = (3, 28, 28), labels: tuple[int, ...] = (0, 9, 1)
) -> None:
    (root / "MNIST" / "raw").mkdir(parents=True, exist_ok=True)
    for file in MNIST_FILES:
        content = (
            np.zeros(images, np.uint8) if "images" in file else np.array(labels, np.uint8)
        )
        (root / file).write_bytes(idx(content))


def test_broken_mnist_files_are_named(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    assert load("mnist", tmp_path).test.labels.tolist() == [0, 9, 1]
    for content in (b"", b"\0\0\x08\x03" + b"\xff" * 12, b"\0\0\x99\x01\0\0\0\x01a"):
        write_mnist(tmp_path)
        (tmp_path / "MNIST/raw/train-images-idx3-ubyte").write_bytes(content)
        with Refused("mnist", raises=DataError):
            load("mnist", tmp_path)


def write_add(root: Path) -> Path:
    (root / "ADD").mkdir(exist_ok=True)
    for name in ("train", "test"):
        np.save(root / "ADD" / f"X_{name}.npy", np.zeros((3, 40, 2)))
        np.save(root / "ADD" / f"Y_{name}.npy", np.arange(3))
    return root / "ADD" / "X_train.npy"


HEADER = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        HEADER + b"\x01\x00(",
        HEADER + b"\x04\x00" + 3 * b"'" + b"a",
        HEADER + b"\x02\x00{}",
        HEADER + b"\x28\x23" + b"-" * 9000,
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        HEADER
        + b"\x50\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 40, 2)}      ",
        HEADER
        + b"\x50\x00{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999, 2)} ",
    ],
)
def test_any_other_add_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = write_add(tmp_path)
    assert load("add", tmp_path).train.labels.tolist() == [0, 1, 2]
    path.write_bytes(content)
    place = f"{tmp_path / 'ADD'}: X_train.npy and Y_train.npy"
    with Refused("add_arrays", place, raises=DataError):
        load("add", tmp_path)
