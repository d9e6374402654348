"""The tasks of the benchmark: data, a concern, a model and a budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from examples.benchmark.package_tables import (
    Samples,
    load_crashes,
    load_credit,
    load_grades,
    load_keel,
)
from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.concern.suggest import spec_from_order
from mpcs_torch.errors import quoted
from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.trainer.data import (
    DataSplits,
    load_add,
    load_breast_cancer,
    load_digits,
    load_mnist,
    load_ucr,
)
from mpcs_torch.trainer.networks import MODELS, two_convolutions

Loader = Callable[[Path], Samples]
Concern = Callable[[Sequence[str]], ConcernSpec]
"""Makes a concern from the names of classes."""
Shares = tuple[float, float]
"""Of all samples, those to train with and those to validate with; the others test."""
THIRDS = (1 / 3, 1 / 3)


class Parts(NamedTuple):
    """The places of the samples of a task under one seed, int64."""

    train: Tensor
    validation: Tensor
    test: Tensor


@dataclass(frozen=True)
class Task:
    """Data with a concern, and a model that every loss trains with the same number of steps."""

    name: str
    load: Loader
    concern: Concern
    model: Callable[..., nn.Module]
    """From the shape of an input, the number of outputs and, for some losses, that of ``hidden`` units."""
    steps: int = 800
    batch_size: int = 32
    learning_rates: tuple[float, ...] = (0.003, 0.01)
    shares: Shares | None = THIRDS
    """None: the published test samples test, and a sixth of the others validates."""
    clip_norm: float | None = None
    """The largest norm of all gradients of a model together."""
    is_scaled: bool = False
    """Whether inputs are standardized by the training samples."""
    choice_seeds: range = range(8)
    """By whose validation samples everything is chosen."""
    seeds: range = range(200, 240)
    """By which nothing was chosen: they judge."""
    at_once: int = 200
    """The number of models that train in one call."""
    limit: float = 0.005
    """On the rate of dangerous errors, where samples may be referred."""
    groups: tuple[str, ...] = ("core", "others", "wide", "literature")
    """The groups of losses that are tried."""
    source: str = ""
    """Tasks with the same source share the trainings of losses without costs: they differ in their concern alone."""
    is_image: bool = False
    """Whether augmentation shifts images by whole pixels; otherwise, it adds normal noise."""
    noises: tuple[float, ...] = (0.0, 0.15, 0.5)
    """The strengths of augmentation that are tried: pixels, or shares of the standard deviation of all inputs."""
    lengths: tuple[int, ...] = (1, 4)
    """The multiples of the steps that are tried."""

    def parts(self, root: Path, seed: int) -> Parts:
        """Return the places of the samples for a seed, which draws the validation samples.

        Groups stay together. Where samples have weights, each part is drawn with replacement in proportion to them, so
        that it is a sample of the population.
        """
        samples = self.samples(root)
        generator = torch.Generator().manual_seed(seed)
        number = len(samples.labels)
        if self.shares is None:
            order = torch.randperm(number - samples.num_test, generator=generator)
            size = len(order) // 6
            return Parts(
                order[size:], order[:size], torch.arange(number - samples.num_test, number)
            )
        units = torch.arange(number) if samples.groups is None else samples.groups
        order = torch.randperm(int(units.max()) + 1, generator=generator)
        sizes = [round(share * len(order)) for share in self.shares]
        parts = [
            torch.isin(units, part).nonzero().flatten()
            for part in torch.split(order, [*sizes, len(order) - sum(sizes)])
        ]
        if samples.weights is not None:
            weights = samples.weights
            parts = [
                part[torch.multinomial(weights[part], len(part), True, generator=generator)]
                for part in parts
            ]
        return Parts(*parts)

    def samples(self, root: Path) -> Samples:
        """Return all samples."""
        return _loaded(self.load, root)

    def spec(self, root: Path) -> ConcernSpec:
        """Return the concern over the classes of the data."""
        return self.concern(self.samples(root).class_names)


@cache
def _loaded(load: Loader, root: Path) -> Samples:
    """Load the data once in each process; nothing writes to the tensors."""
    return load(root)


def all_samples(
    root: Path, *, load: Callable[..., DataSplits], keeps_test: bool = False
) -> Samples:
    """Load a data set of the package, with its training and test samples together."""
    data = load(root)
    inputs = torch.cat([data.train.inputs, data.test.inputs])
    labels = torch.cat([data.train.labels, data.test.labels])
    return Samples(
        inputs,
        labels,
        data.class_names,
        num_test=len(data.test.labels) if keeps_test else 0,
    )


def _releasing(*releases: Sequence[int]) -> Concern:
    return lambda names: ConcernSpec(
        list(names), releases=[list(each) for each in releases], factor=0.5
    )


def _randomly_releasing(names: Sequence[str], *, pairs: int, seed: int) -> ConcernSpec:
    """Release so many of the ordered pairs of classes, drawn at random."""
    ordered = [
        (true, other)
        for true in range(len(names))
        for other in range(len(names))
        if true != other
    ]
    order = torch.randperm(len(ordered), generator=torch.Generator().manual_seed(seed))
    releases = [ordered[place] for place in order[:pairs].tolist()]
    return ConcernSpec(list(names), releases=releases, factor=0.5)


def _ordered(names: Sequence[str], *, under: float = 1.0, over: float = 1.0) -> ConcernSpec:
    """Return costs that grow with the distance of grades; errors from half of the highest cost on are dangerous."""
    return ConcernSpec(
        list(names),
        weights=spec_from_order(names, under=under, over=over).weights,
        dangerous=0.5,
    )


def _packaged(name: str) -> Concern:
    return lambda _: load_concern(packaged_file("concerns", name))


def _cnn(input_shape: Sequence[int], num_classes: int) -> nn.Module:
    """Return the network CNN-M of the MPCS paper for square images of any size."""
    return nn.Sequential(*two_convolutions(input_shape[-1], num_classes))


_mlp, _lstm = partial(MODELS["mlp"], hidden=32), partial(MODELS["lstm"], hidden=32)
_mnist = Task(
    "MNIST, MLP",
    partial(all_samples, load=load_mnist, keeps_test=True),
    _packaged("mnist-case-study"),
    _mlp,
    steps=2340,  # 6 passes
    batch_size=128,
    learning_rates=(0.01,),
    shares=None,
    choice_seeds=range(2),
    seeds=range(200, 210),
    at_once=10,
    groups=("core",),
    source="mnist-mlp",
    is_image=True,
    noises=(0.0, 1.0),
    lengths=(1, 2),
)
_DIGITS_RELEASES = (
    (1, 8),
    (2, 8),
    (3, 8, 9),
    (4, 7),
    (7, 4, 9),
    (8, 1, 2, 3, 9),
    (9, 3, 7, 8),
)
"""Digits that are neighbours in a t-SNE projection of the images, as in the MPCS paper."""
_digits = Task(
    "digits, MLP",
    partial(all_samples, load=load_digits),
    _releasing(*_DIGITS_RELEASES),
    _mlp,
    steps=1000,
    learning_rates=(0.01, 0.03),
    shares=(0.35, 0.45),
    source="digits",
)
_table = partial(
    Task, model=_mlp, is_scaled=True, choice_seeds=range(4), seeds=range(200, 220)
)
"""Makes a task with a table of features."""
_large = partial(_table, steps=800, batch_size=64, groups=("core",))
"""Makes a task with a table of many rows."""
_recurrent = partial(
    Task,
    model=_lstm,
    clip_norm=1.0,
    choice_seeds=range(4),
    seeds=range(200, 220),
    at_once=20,
    groups=("core",),
)


def _with_random_lists(task: Task, number: int, **changes: Sequence[str]) -> list[Task]:
    """Return variants of a task with ten classes that release 28 of 90 ordered pairs at random."""
    lists = range(1, number + 1)
    concerns = [partial(_randomly_releasing, pairs=28, seed=seed) for seed in lists]
    names = [f"{task.name}, random list {seed}" for seed in lists]
    return [
        replace(task, name=name, concern=concern, **changes)  # type: ignore[arg-type]  # mypy sees one type
        for name, concern in zip(names, concerns, strict=True)
    ]


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _digits,
        *_with_random_lists(_digits, 1),
        # Mistaking a malignant tumour (0) for a benign one is dangerous.
        _table(
            "breast cancer, MLP",
            partial(all_samples, load=partial(load_breast_cancer, test_fraction=0.5)),
            _releasing([1, 0]),
            steps=400,
            limit=0.05,
            choice_seeds=range(16),
            seeds=range(200, 280),
            groups=("core", "others", "wide", "literature", "binary"),
        ),
        # Grey soil, damp grey soil and very damp grey soil may be mistaken for the next one.
        _table(
            "satimage, MLP",
            partial(load_keel, name="satimage"),
            _releasing([2, 3], [3, 2], [3, 5], [5, 3]),
            steps=1500,
            groups=("core",),
        ),
        *_with_random_lists(
            _table(
                "penbased, MLP",
                partial(load_keel, name="penbased"),
                _releasing(),
                steps=1500,
                batch_size=64,
                source="penbased",
                groups=("core",),
            ),
            2,
        ),
        _mnist,
        *(
            replace(
                _mnist,
                name=f"MNIST, MLP, random list {number}",
                concern=_packaged(f"mnist-random-{number}"),
            )
            for number in (1, 2, 3)
        ),
        # An injury that is rated too low by two grades or more is dangerous.
        _large(
            "crashes, MLP", load_crashes, partial(_ordered, under=1.0, over=0.2), limit=0.05
        ),
        # A grade that is predicted too high by three grades or more is dangerous.
        _large(
            "grades, MLP", load_grades, partial(_ordered, under=0.2, over=1.0), limit=0.05
        ),
        # Granting a loan that is not paid back is dangerous.
        _large(
            "credit, MLP",
            load_credit,
            _releasing([0, 1]),
            limit=0.05,
            groups=("core", "binary", "rows"),
        ),
        replace(
            _digits,
            name="digits, CNN",
            model=_cnn,
            learning_rates=(0.003, 0.01),
            choice_seeds=range(4),
            seeds=range(200, 220),
            at_once=20,
            groups=("core",),
            source="digits-cnn",
        ),
        _recurrent(
            "UCR SmoothSubspace, LSTM",
            partial(all_samples, load=partial(load_ucr, set="SmoothSubspace")),
            _releasing([0, 1], [1, 0]),
            steps=800,
            learning_rates=(0.01, 0.03),
            limit=0.05,
        ),
        _recurrent(
            "ADD, LSTM",
            partial(all_samples, load=load_add),
            _releasing([0, 1], [1, 0]),
            steps=500,
            batch_size=64,
            shares=(0.15, 0.35),
        ),
    )
}
"""By the name that tables show, in the order in which they are run."""


def tasks_of(parts: Sequence[str]) -> list[str]:
    """Return the names of tasks that are equal to one of the parts or contain one; all without parts.

    Raises:
        ValueError: If no name contains a part.
    """
    names: dict[str, None] = {}
    for part in parts or [""]:
        matching = (
            [part]
            if part in TASKS
            else [name for name in TASKS if part.lower() in name.lower()]
        )
        if not matching:
            raise ValueError(
                f"TASK must be part of one of {', '.join(map(repr, TASKS))}, but got {quoted(part)}"
            )
        names.update(dict.fromkeys(matching))
    return list(names)
