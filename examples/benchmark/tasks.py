"""The tasks of the benchmark: data, a concern, a model and a budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from examples.benchmark.keel_tables import load_keel
from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.errors import quoted
from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.trainer.data import (
    DataSplits,
    Split,
    load_add,
    load_breast_cancer,
    load_digits,
    load_mnist,
    load_ucr,
    load_wine,
)
from mpcs_torch.trainer.named_parts import MODELS

Loader = Callable[[Path], DataSplits]
Shares = tuple[float, float]
"""Of all samples, those to train with and those to validate with; the others test."""
THIRDS = (1 / 3, 1 / 3)


class Parts(NamedTuple):
    """The samples of a task under one seed."""

    train: Split
    validation: Split
    test: Split


@dataclass(frozen=True)
class Task:
    """Data with a concern, and a model that every method trains with the same number of steps."""

    name: str
    load: Loader
    concern: Callable[[Sequence[str]], ConcernSpec]
    """Of the names of the classes."""
    model: Callable[[Sequence[int], int], nn.Module] | None
    """From the shape of an input and the number of outputs; None for `estimator`."""
    steps: int = 800
    batch_size: int = 32
    learning_rates: tuple[float, ...] = (0.003, 0.01)
    shares: Shares | None = THIRDS
    """None: the published test samples test, and a sixth of the others validates."""
    clip_norm: float | None = None
    """The largest norm of all gradients together."""
    is_scaled: bool = False
    """Whether inputs are standardized by the training samples."""
    tuning_seeds: range = range(3)
    """Under which every setting is trained at every learning rate."""
    choice_seeds: range = range(16)
    """Those and further ones, under which every setting is trained at its best learning rate."""
    seeds: range = range(100, 120)
    """By which nothing was chosen."""
    limit: float = 0.005
    """On the rate of dangerous errors, where samples may be referred."""
    groups: tuple[str, ...] = ("core", "losses", "schedules", "ensembles")
    """The groups of methods that are tried."""
    estimator: Callable[[float, int], Any] | None = None
    """From a setting and a seed: a classifier of scikit-learn."""
    source: str = ""
    """Tasks with the same source share the runs of plain methods: they differ in their concern alone."""
    is_image: bool = False
    """Whether augmentation shifts images by whole pixels; otherwise, it adds normal noise."""
    noises: tuple[float, ...] = (0.0, 0.15, 0.5)
    """The strengths of augmentation that are tried: pixels, or shares of the standard deviation of all inputs."""
    bayes: Callable[[Tensor], Tensor] | None = None
    """The true probabilities (N, C) of inputs (N, ...), where they are known."""

    def parts(self, root: Path, seed: int) -> Parts:
        """Return the samples for a seed, which draws the validation samples."""
        data = _loaded(self.load, root)
        generator = torch.Generator().manual_seed(seed)
        if self.shares is None:
            order = torch.randperm(len(data.train.labels), generator=generator)
            size = len(order) // 6
            return Parts(data.train.at(order[size:]), data.train.at(order[:size]), data.test)
        inputs = torch.cat([data.train.inputs, data.test.inputs])
        labels = torch.cat([data.train.labels, data.test.labels])
        order = torch.randperm(len(labels), generator=generator)
        sizes = [round(share * len(labels)) for share in self.shares]
        train, validation, test = torch.split(order, [*sizes, len(labels) - sum(sizes)])
        if self.is_scaled:
            inputs = (inputs - inputs[train].mean(dim=0)) / inputs[train].std(dim=0).clamp(min=1e-6)
        return Parts(*(Split(inputs[part], labels[part]) for part in (train, validation, test)))

    def spec(self, root: Path) -> ConcernSpec:
        """Return the concern over the classes of the data."""
        return self.concern(_loaded(self.load, root).class_names)


@cache
def _loaded(load: Loader, root: Path) -> DataSplits:
    """Load the data once in each process; nothing writes to the tensors."""
    return load(root)


def _releasing(*releases: Sequence[int]) -> Callable[[Sequence[str]], ConcernSpec]:
    return lambda names: ConcernSpec(list(names), releases=[list(each) for each in releases], factor=0.5)


def _randomly_releasing(names: Sequence[str], *, pairs: int, seed: int) -> ConcernSpec:
    """Release so many of the ordered pairs of classes, drawn at random."""
    ordered = [(true, other) for true in range(len(names)) for other in range(len(names)) if true != other]
    drawn = torch.randperm(len(ordered), generator=torch.Generator().manual_seed(seed))[:pairs].tolist()
    return ConcernSpec(list(names), releases=[ordered[place] for place in drawn], factor=0.5)


def _packaged(name: str) -> Callable[[Sequence[str]], ConcernSpec]:
    return lambda _: load_concern(packaged_file("concerns", name))


SIMULATED_CLASSES, SIMULATED_FEATURES = 6, 8
SIMULATED_SIZES = (6000, 20_000)
"""Samples to train and validate with, and to test with."""


def _simulated_centres() -> Tensor:
    """Return the centres of classes, (C, D): three groups of two classes that are close to each other."""
    generator = torch.Generator().manual_seed(0)
    of_groups = 1.2 * torch.randn(SIMULATED_CLASSES // 2, 1, SIMULATED_FEATURES, generator=generator)
    within = 0.6 * torch.randn(SIMULATED_CLASSES // 2, 2, SIMULATED_FEATURES, generator=generator)
    return (of_groups + within).reshape(SIMULATED_CLASSES, SIMULATED_FEATURES)


def simulated(root: Path) -> DataSplits:  # noqa: ARG001  # no files
    """Draw samples of normal distributions with variance 1 around the centres of six classes of equal frequency."""
    generator, centres = torch.Generator().manual_seed(1), _simulated_centres()
    splits = []
    for size in SIMULATED_SIZES:
        labels = torch.randint(0, len(centres), (size,), generator=generator)
        splits.append(Split(centres[labels] + torch.randn(size, SIMULATED_FEATURES, generator=generator), labels))
    return DataSplits(splits[0], splits[1], tuple(map(str, range(SIMULATED_CLASSES))))


def simulated_probs(inputs: Tensor) -> Tensor:
    """Return the true probabilities (N, C) of inputs (N, D) of `simulated`."""
    return (-0.5 * torch.cdist(inputs.double(), _simulated_centres().double()) ** 2).softmax(dim=1)


def _forest(leaf: float, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(300, min_samples_leaf=int(leaf), random_state=seed)


def _boosting(leaf: float, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=int(4 * leaf), random_state=seed)


_mlp, _lstm = partial(MODELS["mlp"], hidden=32), partial(MODELS["lstm"], hidden=32)
_mnist = Task(
    "MNIST, MLP",
    load_mnist,
    _packaged("mnist-case-study"),
    _mlp,
    steps=2340,  # 6 passes
    batch_size=128,
    learning_rates=(0.01, 0.02),
    shares=None,
    tuning_seeds=range(2),
    choice_seeds=range(4),
    source="mnist-mlp",
    is_image=True,
    noises=(0.0, 1.0),
)
_DIGITS_RELEASES = ((1, 8), (2, 8), (3, 8, 9), (4, 7), (7, 4, 9), (8, 1, 2, 3, 9), (9, 3, 7, 8))
"""As drafted by ``mpcs concern suggest digits --from tsne --seeds 1``."""
_digits = Task(
    "digits, MLP",
    load_digits,
    _releasing(*_DIGITS_RELEASES),
    _mlp,
    steps=1000,
    learning_rates=(0.01, 0.03),
    shares=(0.35, 0.45),
    source="digits",
)
_TREES: dict[str, Any] = {"model": None, "learning_rates": (0.0,), "groups": ("trees",), "choice_seeds": range(3)}


_table = partial(Task, model=_mlp, is_scaled=True, seeds=range(200, 240))
"""Makes a task with a table of features."""
_small = partial(Task, model=_mlp, is_scaled=True, seeds=range(100, 160), limit=0.05)
"""Makes a task with so few samples that it takes more seeds and a higher limit."""
_recurrent = partial(Task, model=_lstm, clip_norm=1.0, tuning_seeds=range(2), choice_seeds=range(6))


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _mnist,
        *(
            replace(
                _mnist,
                name=f"MNIST, MLP, random list {number}",
                concern=_packaged(f"mnist-random-{number}"),
                groups=("core", "losses"),  # schedules by MPCS would not share runs with other concerns
            )
            for number in (1, 2, 3)
        ),
        replace(
            _mnist,
            name="MNIST, CNN",
            model=MODELS["cnn_m"],
            learning_rates=(0.004,),
            tuning_seeds=range(1),
            choice_seeds=range(1),
            seeds=range(100, 108),
            groups=("core",),
            source="mnist-cnn",
        ),
        _digits,
        replace(_digits, name="digits, random forest", estimator=_forest, source="digits-forest", **_TREES),
        replace(_digits, name="digits, boosting", estimator=_boosting, source="digits-boosting", **_TREES),
        # Grey soil, damp grey soil and very damp grey soil may be mistaken for the next one.
        _table(
            "satimage, MLP",
            partial(load_keel, name="satimage"),
            _releasing([2, 3], [3, 2], [3, 5], [5, 3]),
            steps=1500,
            choice_seeds=range(3),
            seeds=range(200, 212),
        ),
        *(
            _table(
                f"penbased, MLP, random list {number}",
                partial(load_keel, name="penbased"),
                partial(_randomly_releasing, pairs=28, seed=number),
                steps=1500,
                batch_size=64,
                source="penbased",
                choice_seeds=range(3),
                seeds=range(200, 212),
            )
            for number in (1, 2)
        ),
        _table(
            "vehicle, MLP",
            partial(load_keel, name="vehicle"),
            _releasing([1, 2], [2, 1]),
            limit=0.05,  # opel and saab
        ),
        # Mistaking a malignant tumour for a benign one is dangerous.
        _small("breast cancer, MLP", partial(load_breast_cancer, test_fraction=0.5), _releasing([1, 0]), steps=400),
        _small("wine, MLP", load_wine, _releasing([1, 2], [2, 1]), steps=200),
        _small("UCR Chinatown, MLP", partial(load_ucr, set="Chinatown"), _releasing([1, 0]), steps=400),
        _recurrent(
            "UCR SmoothSubspace, LSTM",
            partial(load_ucr, set="SmoothSubspace"),
            _releasing([0, 1], [1, 0]),
            steps=800,
            learning_rates=(0.01, 0.03),
            limit=0.05,
        ),
        _recurrent("ADD, LSTM", load_add, _releasing([0, 1], [1, 0]), steps=500, batch_size=64, shares=(0.15, 0.35)),
        Task(
            "simulated, MLP",
            simulated,
            _releasing([0, 1], [1, 0], [2, 3], [3, 2], [4, 5], [5, 4]),
            _mlp,
            shares=None,
            bayes=simulated_probs,
        ),
    )
}
"""By the name that tables show."""


def tasks_of(parts: Sequence[str]) -> list[str]:
    """Return the names of tasks that are equal to one of the parts or contain one; all without parts.

    Raises:
        ValueError: If no name contains a part.
    """
    names: dict[str, None] = {}
    for part in parts or [""]:
        matching = [part] if part in TASKS else [name for name in TASKS if part.lower() in name.lower()]
        if not matching:
            raise ValueError(f"TASK must be part of one of {', '.join(map(repr, TASKS))}, but got {quoted(part)}")
        names.update(dict.fromkeys(matching))
    return list(names)
