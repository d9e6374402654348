"""Data sets: shapes, ranges, and a clear word where one is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data import DATASETS, DataSplits, hold_out_validation
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
        ("mnist", (1, 28, 28), 60000, 10000, 10),
        ("add", (40, 2), 2400, 600, 3),
        ("ucr/Chinatown", (24, 1), 20, 343, 2),
        ("ucr/SmoothSubspace", (15, 1), 150, 150, 3),
    ],
)
def test_sets_have_the_shapes_and_classes_of_their_source(
    name: str,
    shape: tuple[int, ...],
    train: int,
    test: int,
    classes: int,
    request: pytest.FixtureRequest,
) -> None:
    root, arguments = Path(), {}
    if name not in ("iris", "digits", "breast_cancer"):
        root = request.getfixturevalue("data_root")
    if name.startswith("ucr/"):
        name, arguments["set"] = name.split("/")
    data = load(name, root, **arguments)
    assert data.train.inputs.shape == (train, *shape)
    assert data.test.inputs.shape == (test, *shape)
    assert data.train.inputs.dtype == torch.float32
    assert data.train.labels.unique().tolist() == list(range(classes))
    assert len(data.class_names) == classes


def test_unused_classes_add_names_and_nothing_else() -> None:
    data, more = load("breast_cancer"), load("breast_cancer", unused_classes=8)
    assert torch.equal(data.train.inputs, more.train.inputs)
    assert len(more.class_names) == len(set(more.class_names)) == 10


@pytest.mark.parametrize(
    "split",
    [
        lambda seed: load("iris", split_seed=seed),
        lambda seed: hold_out_validation(load("iris"), 0.2, seed),
    ],
    ids=["test", "validation"],
)
def test_a_split_follows_its_seed_and_leaves_the_global_generator_alone(
    split: Callable[[int], DataSplits],
) -> None:
    before = torch.get_rng_state()
    first, same, other = [split(seed).train.inputs for seed in (3, 3, 4)]
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_split_without_training_samples_is_refused() -> None:
    with Refused("cannot_split", raises=DataError, number=150):
        load("iris", test_fraction=0.9999)


def test_mnist_as_rows_is_the_same_images(data_root: Path) -> None:
    rows, images = load("mnist", data_root, rows=True), load("mnist", data_root)
    assert torch.equal(rows.test.inputs, images.test.inputs[:, 0])
    assert images.train.inputs.aminmax() == (0, 1)


def test_a_missing_add_file_is_named(tmp_path: Path) -> None:
    place = f"{tmp_path / 'ADD'}: X_train.npy and Y_train.npy"
    with Refused("add_arrays", place, raises=DataError):
        load("add", tmp_path)


def test_mnist_without_files_says_how_to_get_them(tmp_path: Path) -> None:
    with Refused("mnist", raises=DataError, folder=str(tmp_path / "MNIST" / "raw")):
        load("mnist", tmp_path)


def idx(array: "np.ndarray[Any, Any]") -> bytes:
    sizes = [size.to_bytes(4, "big") for size in array.shape]
    return bytes([0, 0, 8, array.ndim]) + b"".join(sizes) + array.tobytes()


def write_mnist(root: Path, labels: tuple[int, ...] = (0, 9, 1)) -> None:
    (root / "MNIST" / "raw").mkdir(parents=True, exist_ok=True)
    images = np.zeros((3, 28, 28), np.uint8)
    for file in MNIST_FILES:
        array = images if "images" in file else np.array(labels, np.uint8)
        (root / file).write_bytes(idx(array))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"half a file",
        b"\0\0\x08\x03" + b"\xff" * 12,
        b"\0\0\x99\x01\0\0\0\x01a",
    ],
)
def test_broken_mnist_files_are_named(tmp_path: Path, content: bytes) -> None:
    write_mnist(tmp_path)
    assert load("mnist", tmp_path).test.labels.tolist() == [0, 9, 1]
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
