"""Data sets by name, and their splits for training, validation and test."""

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
from pydantic import Field
from sklearn import datasets
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from torch import Tensor
from torch.utils.data import RandomSampler
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError, InvalidValueError, printable, quoted, require
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.processes import ALONE, World
from mpcs_torch.trainer.config.section import Fraction, Seed


class Split(NamedTuple):
    """Labelled samples in memory."""

    inputs: Tensor
    """The inputs of the samples, (N, *shape), float32."""
    labels: Tensor
    """The true class of each sample, (N,), int64 in [0, C)."""
    clusters: Tensor | None = None
    """The patient, speaker or recording of each sample, (N,), int64; samples of a cluster stay in the same split."""

    def to(self, device: torch.device, dtype: torch.dtype) -> "Split":
        """Return the split with inputs and labels on ``device``. Floating-point inputs get ``dtype``."""
        of_inputs = dtype if self.inputs.is_floating_point() else None
        inputs = self.inputs.to(device, of_inputs)
        return self._replace(inputs=inputs, labels=self.labels.to(device))

    def at(self, index: Tensor) -> "Split":
        """Return the samples at the positions ``index`` (K,), int64."""
        chosen = [None if part is None else part.index_select(0, index) for part in self]
        return Split._make(chosen)


@dataclass(frozen=True)
class DataSplits:
    """A data set: training samples, test samples, and validation samples, if any."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    validation: Split | None = None

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name: train, validation (if there is one) and test."""
        splits = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: split for name, split in splits.items() if split is not None}

    def to(self, device: torch.device, dtype: torch.dtype) -> "DataSplits":
        """Return the data set with each split moved and converted by `Split.to`."""
        moved = {name: split.to(device, dtype) for name, split in self.splits.items()}
        return DataSplits(class_names=self.class_names, **moved)


def shuffled(split: Split, world: World = ALONE) -> Tensor:
    """Return a random order of the samples, int64 (N,), which is the same in all processes.

    The order is that of ``DataLoader(..., shuffle=True)``, and uses up the same numbers of the global random generator.
    """
    order = torch.empty(len(split.labels), dtype=torch.int64)
    if world.is_first:
        # A DataLoader draws a seed for workers even if it has none.
        seed = order.new_empty(())
        seed.random_()
        order = torch.tensor([*RandomSampler(split.labels)])
    order = order.to(split.labels.device)
    world.copy_from_first([order])
    return order


def check_splits(data: DataSplits, source: str) -> None:
    """Check the shapes and values of all splits; raise a `DataError` that names ``source`` and the invalid array."""
    for name, split in data.splits.items():
        place = f"{source}: {name}"
        _require(isinstance(split, Split), "split", place, split)
        inputs, labels, clusters = split
        has_labels = _is_column(labels) and len(labels) > 0
        _require(has_labels, "labels_of_split", f"{place}.labels", labels)
        last = len(data.class_names) - 1
        low = int(labels.min())
        high = int(labels.max())
        are_classes = 0 <= low <= high <= last
        _require(
            are_classes,
            "classes_of_split",
            f"{place}.labels",
            last=last,
            low=low,
            high=high,
        )
        rows = len(labels)
        same_rows = isinstance(inputs, Tensor) and inputs.shape[:1] == labels.shape
        _require(same_rows, "inputs_of_split", f"{place}.inputs", inputs, rows=rows)
        of_rows = clusters is None or (_is_column(clusters) and len(clusters) == rows)
        _require(of_rows, "clusters_of_split", f"{place}.clusters", clusters, rows=rows)


def _require(
    is_valid: bool, code: str, place: str, values: object = None, **fields: int
) -> None:
    if is_valid:
        return
    seen = values if isinstance(values, Tensor) else type(values).__name__
    raise DataError(code, place, seen=seen, **fields)


def _is_column(values: object) -> bool:
    return isinstance(values, Tensor) and values.dtype == torch.int64 and values.ndim == 1


def hold_out_validation(data: DataSplits, fraction: float, seed: int) -> DataSplits:
    """Return ``data`` with a share of its training samples moved to a new validation split, stratified by class.

    If samples have `Split.clusters`, whole clusters are moved. The share and the stratification are then approximate.

    Args:
        data: A data set without a validation split.
        fraction: The share of the training samples to move, in (0, 1). With clusters, it is at most 1/2.
        seed: The seed of the split; the global random generators do not change.

    Raises:
        DataError: If ``data`` already has a validation split, or cannot be split.
    """
    if data.validation is not None:
        raise DataError("has_validation", "data.validation_fraction")
    train = data.train
    labels = train.labels.numpy()
    places = np.arange(len(labels))
    with _splitting(f"data.validation_fraction {fraction}", labels, "training samples"):
        if train.clusters is None:  # fails for a class with one sample, for example
            kept, moved = train_test_split(
                places, test_size=fraction, random_state=seed, stratify=labels
            )
        else:
            parts = round(1 / fraction)
            clusters = train.clusters.numpy()
            number = len({*clusters})
            # scikit-learn before 1.6 moves all samples or none.
            require(number >= parts, "enough_clusters", "it", minimum=parts, number=number)
            folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
            kept, moved = next(folds.split(places, labels, clusters))
    kept.sort()
    moved.sort()
    return replace(
        data,
        train=train.at(torch.from_numpy(kept)),
        validation=train.at(torch.from_numpy(moved)),
    )


@contextmanager
def _splitting(setting: str, labels: Sized, samples: str) -> Iterator[None]:
    """Turn an error of scikit-learn, which says why it cannot split as requested, into a `DataError`."""
    try:
        yield
    except ValueError as error:
        number = len(labels)
        raise DataError(
            "cannot_split", setting, number=number, samples=samples, cause=str(error)
        ) from None


def load_scikit_learn(
    source: Callable[[], "datasets.Bunch"],
    shape: Sequence[int],
    _root: Path,  # no files
    *,
    test_fraction: Fraction = 0.25,
    split_seed: Seed = 0,
) -> DataSplits:
    """Load the data set that the scikit-learn function ``source`` returns. Inputs, (N, *shape), are not scaled."""
    bunch = source()
    inputs = torch.tensor(bunch.data, dtype=torch.float32).reshape(-1, *shape)
    whole = Split(inputs, torch.tensor(bunch.target, dtype=torch.int64))
    with _splitting(f"data.test_fraction {test_fraction}", bunch.target, "samples"):
        train, test = train_test_split(  # fails if no sample is left to train on
            torch.arange(len(inputs)), test_size=test_fraction, random_state=split_seed
        )
    names = tuple(str(name) for name in bunch.target_names)
    return DataSplits(whole.at(train), whole.at(test), names)


load_iris = partial(load_scikit_learn, datasets.load_iris, (4,))
load_digits = partial(load_scikit_learn, datasets.load_digits, (1, 8, 8))


def load_breast_cancer(
    root: Path,
    *,
    test_fraction: Fraction = 0.25,
    split_seed: Seed = 0,
    unused_classes: Annotated[int, Field(ge=0, le=1000)] = 0,
) -> DataSplits:
    """Load Wisconsin breast cancer: inputs (N, 30), 2 classes, and ``unused_classes`` more classes without samples."""
    data = load_scikit_learn(
        datasets.load_breast_cancer,
        (30,),
        root,
        test_fraction=test_fraction,
        split_seed=split_seed,
    )
    unused = [f"unused {number}" for number in range(1, unused_classes + 1)]
    return replace(data, class_names=(*data.class_names, *unused))


def load_mnist(root: Path, *, rows: bool = False) -> DataSplits:
    """Load MNIST: 60 000 training and 10 000 test images of 10 classes, with grey values from 0 to 1.

    Args:
        root: The folder that has torchvision's folder ``MNIST``.
        rows: Whether inputs are series (N, 28, 28), a step for each row of an image, not images (N, 1, 28, 28).

    Raises:
        DataError: If a file is missing or broken.
    """
    try:
        parts = [MNIST(root, train=is_train) for is_train in (True, False)]
    except Exception as error:  # torchvision raises many kinds of errors
        raise DataError("mnist", folder=printable(str(root / "MNIST" / "raw"))) from error
    splits = []
    for part in parts:
        images = part.data.float().div(255)
        splits.append(Split(images if rows else images.unsqueeze(1), part.targets))
    train, test = splits
    return DataSplits(train, test, tuple("0123456789"))


def load_add(root: Path) -> DataSplits:
    """Load ADD, trajectories from an autonomous driving simulator, which the authors of the MPCS paper published.

    There are 2400 training and 600 test trajectories of 3 classes. Inputs are positions (N, 40, 2) in [0, 1].

    Raises:
        DataError: If one of the four files of ``root/ADD`` is missing, or holds no array of numbers.
    """
    train = _read_add(root / "ADD", "train")
    test = _read_add(root / "ADD", "test")
    return DataSplits(train, test, ("0", "1", "2"))


def _read_add(folder: Path, name: str) -> Split:
    try:
        inputs = torch.from_numpy(np.load(folder / f"X_{name}.npy"))
        labels = torch.from_numpy(np.load(folder / f"Y_{name}.npy"))
        return Split(inputs.float(), labels.flatten().long())
    except Exception as error:
        # NumPy parses headers as code, which raises many kinds of errors.
        place = f"{printable(str(folder))}: X_{name}.npy and Y_{name}.npy"
        raise DataError("add_arrays", place, cause=str(error)) from None


def load_ucr(root: Path, *, set: str) -> DataSplits:  # noqa: A002  # a key of the config
    """Load the univariate data set ``set`` of the UCR archive, with inputs (N, steps, 1) that are not scaled.

    The files are ``root/UCR/<set>/<set>_TRAIN.tsv`` and ``_TEST.tsv``, or ``.ts`` files with a header. The label is
    first in a line of a ``.tsv`` file, and last in a line of a ``.ts`` file. Sorted labels become classes from 0 on.

    Raises:
        DataError: If a file is missing, a value is missing or not finite, or series differ in length.
    """
    folder = root / "UCR" / set
    labels, values = _read_ucr(folder, f"{set}_TRAIN")
    test_labels, test_values = _read_ucr(folder, f"{set}_TEST")
    place = f"UCR set {quoted(set)}:"
    unknown = sorted({*test_labels} - {*labels})
    if unknown:
        raise DataError("labels_of_training", place, labels=unknown)
    if values.shape[1] != test_values.shape[1]:
        raise DataError("one_length", place)
    try:
        names = sorted({*labels}, key=float)  # 9 before 10
    except ValueError:
        names = sorted({*labels})
    numbers = {name: number for number, name in enumerate(names)}
    classes = torch.tensor([numbers[label] for label in labels])
    test_classes = torch.tensor([numbers[label] for label in test_labels])
    test = Split(test_values, test_classes)
    return DataSplits(Split(values, classes), test, tuple(names))


def _read_ucr(folder: Path, stem: str) -> tuple[list[str], Tensor]:
    """Read the file ``<stem>.tsv`` or ``<stem>.ts``: the labels as text, and values (N, steps, 1), float32."""
    files = [folder / f"{stem}.tsv", folder / f"{stem}.ts"]
    path = next(filter(Path.is_file, files), None)
    if path is None:
        raise DataError("ucr_file", printable(str(folder)), stem=stem, name=folder.name)
    try:
        lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
        labels, series = list[str](), list[list[str]]()
        for line in lines:
            if path.suffix == ".tsv":
                label, *numbers = line.split()
            elif line[0] in "#@":  # of the header
                continue
            else:
                joined, _, label = line.rpartition(":")
                numbers = joined.split(",")
            labels.append(label)
            series.append(numbers)
        values = torch.from_numpy(np.array(series, dtype=np.float64)).float()
        if values.ndim != 2 or not values.numel() or not values.isfinite().all():
            raise InvalidValueError("finite_series", shape=tuple(values.shape))
    except ValueError as error:
        raise DataError("caused_by", f"{printable(str(path))}:", cause=error) from None
    return labels, values.unsqueeze(-1)


DATASETS: dict[str, Callable[..., DataSplits]] = {
    "iris": load_iris,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
    "mnist": load_mnist,
    "ucr": load_ucr,
    "add": load_add,
}
"""The loaders by name. A loader takes the data folder, and keyword arguments from the config."""
