"""Data sets by name, and their splits for training, validation and test."""

from collections.abc import Callable, Sequence
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
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError, InvalidValueError, printable, quoted
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.processes import ALONE, World


class Split(NamedTuple):
    """Labelled samples in memory."""

    inputs: Tensor
    """The inputs of the samples, (N, *shape), float32."""
    labels: Tensor
    """The true class of each sample, (N,), int64 in [0, C)."""
    clusters: Tensor | None = None
    """The patient, speaker or recording of each sample, (N,), int64; samples of a cluster stay in the same split."""

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "Split":
        """Return the split with inputs and labels on ``device``. Floating-point inputs get ``dtype``, if given."""
        if not self.inputs.is_floating_point():
            dtype = None
        inputs = self.inputs.to(device, dtype)
        return self._replace(inputs=inputs, labels=self.labels.to(device))

    def at(self, index: Tensor) -> "Split":
        """Return the samples at the positions ``index`` (K,), int64."""
        inputs = self.inputs.index_select(0, index)
        labels = self.labels.index_select(0, index)
        clusters = None if self.clusters is None else self.clusters.index_select(0, index)
        return Split(inputs, labels, clusters)


@dataclass(frozen=True)
class DataSplits:
    """A data set: training samples, test samples, and validation samples, if any."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    validation: Split | None = None

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> "DataSplits":
        """Return the data set with each split moved and converted by `Split.to`."""
        validation = None if self.validation is None else self.validation.to(device, dtype)
        train = self.train.to(device, dtype)
        test = self.test.to(device, dtype)
        return replace(self, train=train, test=test, validation=validation)


def shuffled(split: Split, world: World = ALONE) -> Tensor:
    """Return a random order of the samples, int64 (N,), which is the same in all processes.

    The order is that of ``DataLoader(..., shuffle=True)``, and uses up the same numbers of the global random generator.
    """
    order = torch.empty(len(split.labels), dtype=torch.int64)
    if world.is_first:
        # Draw the same numbers as DataLoader and RandomSampler before the first batch.
        _random_seed()  # a DataLoader draws a seed for workers even if it has none
        of_sampler = torch.Generator().manual_seed(_random_seed())
        order = torch.randperm(len(order), generator=of_sampler)
    order = order.to(split.labels.device)
    world.copy_from_first([order])
    return order


def _random_seed() -> int:
    return int(torch.empty((), dtype=torch.int64).random_())


def check_splits(data: DataSplits, source: str) -> None:
    """Check the shapes and values of all splits; raise a `DataError` that names ``source`` and the invalid array."""
    splits = {"train": data.train, "test": data.test}
    if data.validation is not None:
        splits["validation"] = data.validation
    for name, split in splits.items():
        place = f"{source}: {name}"
        _require_array(place, split, isinstance(split, Split), "split")
        inputs, labels, clusters = split
        has_labels = _is_column(labels) and len(labels) > 0
        _require_array(f"{place}.labels", labels, has_labels, "labels_of_split")
        last = len(data.class_names) - 1
        low = int(labels.min())
        high = int(labels.max())
        if not 0 <= low <= high <= last:
            raise DataError(
                "classes_of_split", f"{place}.labels", last=last, low=low, high=high
            )
        same_rows = isinstance(inputs, Tensor) and inputs.shape[:1] == labels.shape
        of_labels = {"rows": len(labels)}
        _require_array(f"{place}.inputs", inputs, same_rows, "inputs_of_split", **of_labels)
        of_rows = clusters is None or (
            _is_column(clusters) and clusters.shape == labels.shape
        )
        _require_array(
            f"{place}.clusters", clusters, of_rows, "clusters_of_split", **of_labels
        )


def _require_array(
    name: str, values: object, is_valid: bool, code: str, **fields: int
) -> None:
    if is_valid:
        return
    seen = type(values).__name__
    if isinstance(values, Tensor):
        seen = f"{values.dtype} {tuple(values.shape)}"
    raise DataError(code, name, seen=seen, **fields)


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
    labels = data.train.labels.numpy()
    clusters = data.train.clusters
    places = torch.arange(len(labels)).numpy()
    try:
        if clusters is None:
            kept, moved = train_test_split(
                places, test_size=fraction, random_state=seed, stratify=labels
            )
        else:
            parts = round(1 / fraction)
            number = len(set(clusters.tolist()))
            if number < parts:  # scikit-learn before 1.6 moves all samples or none
                raise InvalidValueError(
                    "enough_clusters", "it", minimum=parts, number=number
                )
            folds = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
            kept, moved = next(folds.split(places, labels, clusters.numpy()))
    except ValueError as error:  # such as a class with one sample
        setting = f"data.validation_fraction {fraction}"
        raise DataError(
            "cannot_split",
            setting,
            number=len(labels),
            samples="training samples",
            cause=str(error),
        ) from None
    kept.sort()
    moved.sort()
    train = data.train
    return replace(
        data,
        train=train.at(torch.from_numpy(kept)),
        validation=train.at(torch.from_numpy(moved)),
    )


Fraction = Annotated[float, Field(gt=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


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
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    try:
        places = torch.arange(len(labels)).numpy()
        train, test = train_test_split(
            places, test_size=test_fraction, random_state=split_seed
        )
    except ValueError as error:  # such as no sample left to train on
        setting = f"data.test_fraction {test_fraction}"
        number = len(labels)
        raise DataError(
            "cannot_split", setting, number=number, samples="samples", cause=str(error)
        ) from None
    names = tuple(str(name) for name in bunch.target_names)
    return DataSplits(
        Split(inputs[train], labels[train]), Split(inputs[test], labels[test]), names
    )


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
    load = partial(load_scikit_learn, datasets.load_breast_cancer, (30,), root)
    data = load(test_fraction=test_fraction, split_seed=split_seed)
    unused = (f"unused {number}" for number in range(1, unused_classes + 1))
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
    return DataSplits(splits[0], splits[1], tuple(map(str, range(10))))


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
    unknown = sorted({*test_labels} - {*labels})
    if unknown:
        raise DataError("labels_of_training", f"UCR set {quoted(set)}:", labels=unknown)
    if values.shape[1] != test_values.shape[1]:
        raise DataError("one_length", f"UCR set {quoted(set)}:")
    names = _sorted_labels(labels)
    numbers = {name: number for number, name in enumerate(names)}
    classes = torch.tensor([numbers[label] for label in labels])
    test_classes = torch.tensor([numbers[label] for label in test_labels])
    test = Split(test_values, test_classes)
    return DataSplits(Split(values, classes), test, tuple(names))


def _read_ucr(folder: Path, stem: str) -> tuple[list[str], Tensor]:
    """Read the file ``<stem>.tsv`` or ``<stem>.ts``: the labels as text, and values (N, steps, 1), float32."""
    path = folder / f"{stem}.tsv"
    if not path.is_file():
        path = folder / f"{stem}.ts"
    if not path.is_file():
        raise DataError("ucr_file", printable(str(folder)), stem=stem, name=folder.name)
    try:
        lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
        if path.suffix == ".ts":
            rows = [line.rpartition(":") for line in lines if line[0] not in "#@"]
            labels = [label for _, _, label in rows]
            series = [numbers.split(",") for numbers, _, _ in rows]
        else:
            labels = [line.split()[0] for line in lines]
            series = [line.split()[1:] for line in lines]
        values = torch.from_numpy(np.array(series, dtype=np.float64)).float()
        if values.ndim != 2 or not values.numel() or not values.isfinite().all():
            raise InvalidValueError("finite_series", shape=tuple(values.shape))
    except ValueError as error:
        raise DataError("caused_by", f"{printable(str(path))}:", cause=error) from None
    return labels, values.unsqueeze(-1)


def _sorted_labels(labels: list[str]) -> list[str]:
    try:
        return sorted({*labels}, key=float)  # 9 before 10
    except ValueError:
        return sorted({*labels})


DATASETS: dict[str, Callable[..., DataSplits]] = {
    "iris": load_iris,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
    "mnist": load_mnist,
    "ucr": load_ucr,
    "add": load_add,
}
"""The loaders by name. A loader takes the data folder, and keyword arguments from the config."""
