"""Models that train together: a batch of models trains as each would train alone.

Each model has its own samples, first weights, order and noise, from a generator of its own.
"""

from collections.abc import Sequence
from math import ceil, cos, pi
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam

from examples.benchmark.losses import LOSSES, PLAIN, TEACHERS, LossData, Problem
from examples.benchmark.model_inputs import ModelInputs
from examples.benchmark.stacked_losses import StackedLoss
from examples.benchmark.stacked_networks import StackedNetworks, beside, replace_copies
from examples.benchmark.tasks import Parts, Task
from mpcs_torch.concern import ConcernSpec

WARMUP = 0.05
"""The share of the steps in which the learning rate rises to its full value."""
ANOTHER_MEMBER, ANOTHER_COPY = 1000, 1_000_000
"""The differences between the seeds of two models that are trained on the same samples, and of two copies of one."""
AT_ONCE = 1000
"""The number of samples of which outputs are computed at once."""


class Condition(NamedTuple):
    """The samples and steps of each training of a task, whatever its loss."""

    noise: float = 0.0
    """The strength of the augmentation: pixels of shifts, or shares of the standard deviation of all inputs."""
    length: int = 1
    """A multiple of the steps of the task."""


class Regime(NamedTuple):
    """The settings that all models of a fleet share."""

    loss: str
    rate: float
    condition: Condition
    smoothing: float = 0.0
    """The label smoothing of a loss whose setting is another one."""


class Model(NamedTuple):
    """The settings in which the models of a fleet may differ."""

    setting: float
    """Of the loss."""
    seed: int
    """Draws the samples of training, validation and test."""
    member: int = 0
    """The number among models with the same samples: they differ in their first weights and in the order of samples."""

    @property
    def own_seed(self) -> int:
        """The seed of the first weights and of the order."""
        return self.seed + ANOTHER_MEMBER * self.member


class Fleet:
    """Models that train together with one loss, learning rate and condition."""

    def __init__(
        self, task: Task, regime: Regime, models: Sequence[Model], root: Path
    ) -> None:
        samples, spec = task.samples(root), task.spec(root)
        self._task, self._rate = task, regime.rate
        self._steps = regime.condition.length * task.steps
        self.labels, self._row_costs = samples.labels, samples.costs
        by_seed = {model.seed: task.parts(root, model.seed) for model in models}
        self.parts = [by_seed[model.seed] for model in models]
        data = [
            self._loss_data(spec, regime, model, part)
            for model, part in zip(models, self.parts, strict=True)
        ]
        # Copies of a model follow it in the stack. They begin with the same weights, and have orders of their own.
        self._copies = data[0].branches
        places = [place for place in range(len(models)) for _ in range(self._copies)]
        self._loss = StackedLoss([data[place] for place in places])
        self._trains = [self.parts[place].train for place in places]
        self._inputs = ModelInputs(
            task, samples.inputs, self._trains, regime.condition.noise
        )
        units = {"hidden": data[0].hidden} if data[0].hidden else {}
        self._generators, networks = [], []
        for number, place in enumerate(places):
            seed = models[place].own_seed
            self._generators.append(
                torch.Generator().manual_seed(seed + ANOTHER_COPY * (number % self._copies))
            )
            torch.manual_seed(seed)
            networks.append(
                task.model(samples.inputs.shape[1:], len(spec.classes), **units)
            )
        self._networks = StackedNetworks(networks)
        self._teacher: Teacher | None = None
        if data[0].temperature:
            temperature = torch.tensor([each.temperature for each in data])
            self._teacher = Teacher(_teachers(task, regime, models, root), temperature)

    def _loss_data(
        self, spec: ConcernSpec, regime: Regime, model: Model, part: Parts
    ) -> LossData:
        """Return the loss of one model, which may depend on the classes of its training samples."""
        counts = self.labels[part.train].bincount(minlength=len(spec.classes))
        problem = Problem(spec, counts, regime.smoothing)
        return LOSSES[regime.loss].make(problem, model.setting)

    def train(self) -> None:
        """Train all models: Adam, with a warmup and a cosine."""
        if self._teacher is not None:
            self._teacher.fleet.train()
        optimizer = Adam(self._networks.weights, lr=self._rate, fused=True)
        orders = self._orders()
        for step in range(self._steps):
            if self._copies > 1 and step == self._steps // 2:
                states = [
                    state[name]
                    for state in optimizer.state.values()
                    for name in ("exp_avg", "exp_avg_sq")
                ]
                replace_copies(
                    [*self._networks.weights, *states],
                    self._copies,
                    lambda copies: copies[:, :1],
                )
            optimizer.param_groups[0]["lr"] = self._rate * cosine(step, self._steps)
            self._set_gradients(orders[:, step], step / self._steps)
            optimizer.step()
        if self._copies > 1:
            replace_copies(
                self._networks.weights,
                self._copies,
                lambda copies: copies.mean(dim=1, keepdim=True),
            )

    def _orders(self) -> Tensor:
        """Return the places of the samples of each step, int32 (M, steps, batch): pass by pass, without the rest."""
        size, orders = self._task.batch_size, []
        for train, generator in zip(self._trains, self._generators, strict=True):
            in_pass = len(train) // size * size
            number = ceil(self._steps * size / in_pass)
            passes = [
                train[torch.randperm(len(train), generator=generator)[:in_pass]].int()
                for _ in range(number)
            ]
            orders.append(
                torch.cat(passes)[: self._steps * size].reshape(self._steps, size)
            )
        return torch.stack(orders)

    def _set_gradients(self, places: Tensor, progress: float) -> None:
        inputs = self._inputs.augmented(places, self._generators)

        def backward() -> None:
            self._networks.clear_gradients()
            losses = self._losses(inputs, places, progress)
            # The sum over models: each model has the gradient of its own mean.
            losses.mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]

        backward()
        if self._loss.is_sharpness_aware:
            self._networks.at_sharper(self._loss.radius, backward)
        if self._task.clip_norm is not None:
            self._networks.clip(self._task.clip_norm)

    def _losses(self, inputs: Tensor, places: Tensor, progress: float) -> Tensor:
        """Return the losses (M, B) of samples."""
        if self._teacher is not None:
            mixed, probs = self._teacher.mixed(inputs, self._generators)
            return -(probs * self.forward(mixed).log_softmax(dim=-1)).sum(dim=-1)
        labels = self.labels[places]
        losses = self._loss(self.forward(inputs), labels, progress)
        if self._row_costs is not None and self._loss.is_by_row:
            losses = losses * self._row_costs[places, labels] / self._row_costs.mean()
        return losses

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs (M, B, C) of all models for inputs (M, B, ...)."""
        return self._networks(inputs)

    def outputs(self, model: int, places: Tensor) -> Tensor:
        """Return the logits (N, C) of one model for the samples at ``places``."""
        row = model * self._copies
        parts = [self._inputs.scaled(part, row) for part in torch.split(places, AT_ONCE)]
        outputs = torch.cat([self._networks.outputs(row, part) for part in parts])
        return self._loss.logits(outputs, row)


class Teacher(NamedTuple):
    """The models whose mean each of M students learns."""

    fleet: Fleet
    """`TEACHERS` models for each student."""
    temperature: Tensor
    """(M,)."""

    @torch.no_grad()
    def mixed(
        self, inputs: Tensor, generators: Sequence[torch.Generator]
    ) -> tuple[Tensor, Tensor]:
        """Return weighted means of pairs of inputs (M, B, ...), and the teacher's probabilities for them (M, B, C)."""
        shares = torch.stack(
            [torch.rand(inputs.shape[1], generator=each) for each in generators]
        )
        mixed = torch.lerp(inputs.roll(1, dims=1), inputs, beside(shares, inputs))
        logits = self.fleet.forward(mixed.repeat_interleave(TEACHERS, dim=0))
        logits = logits.reshape(-1, TEACHERS, *logits.shape[1:])
        probs = (logits / beside(self.temperature, logits)).softmax(dim=-1)
        return mixed, probs.mean(dim=1)


def _teachers(task: Task, regime: Regime, students: Sequence[Model], root: Path) -> Fleet:
    """Return the teachers of students, with the same samples: cross entropies with the smoothing of the regime."""
    models = [
        Model(regime.smoothing, student.seed, TEACHERS * student.member + number)
        for student in students
        for number in range(TEACHERS)
    ]
    return Fleet(task, Regime(PLAIN, regime.rate, regime.condition), models, root)


def cosine(step: int, steps: int) -> float:
    """Return the share of the full learning rate at a step."""
    warmup = max(1, round(WARMUP * steps))
    return min(1.0, (step + 1) / warmup) * (0.5 + 0.5 * cos(pi * step / steps))
