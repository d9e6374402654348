"""The trainings of the fair comparison: each trains one model, and keeps what it says about samples in one file.

Whatever its loss, a training has the steps, the augmentation and the learning rates of its task: only the loss differs.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.optim import Adam

from examples.benchmark.methods import Batch, BatchLoss, Problem, concern, cost_weighted, logit_adjustment, soft_labels
from examples.benchmark.runs import Outcome, cosine, file_name, outputs
from examples.benchmark.tasks import TASKS, Parts, Task
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.learning.choice import harm_matrix

RAMP = (0.1, 0.6)
"""The shares of the steps between which a margin grows from 0 to its full value."""
FLOOR, FULL_MARGIN = 0.5, 4.0
"""Of the margin with a floor: the share of the margin for errors without harm, and the margin for the worst in nats."""
ANOTHER_MEMBER = 1000
"""The difference between the seeds of two models that are trained on the same samples."""

Setting = tuple[tuple[str, float], ...]
"""The names and values of the settings of a loss."""


class Condition(NamedTuple):
    """What each training of a task may use, whatever its loss."""

    noise: float = 0.0
    """The strength of the augmentation: see `augmented`."""
    length: int = 1
    """A multiple of the steps of the task."""


def margin(*, full: float, floor: float, harm: Tensor, label_smoothing: float) -> BatchLoss:
    """Make a cross entropy of logits to which a margin is added for each wrong class.

    The margin is ``full`` nats for errors of harm 1, and the share ``floor`` of it for errors without harm. It grows
    from 0 between 10 and 60 % of the steps.
    """
    margins = full * (floor + (1 - floor) * harm).fill_diagonal_(0).float()
    begin, end = RAMP

    def loss(batch: Batch) -> Tensor:
        share = min(max((batch.progress - begin) / (end - begin), 0.0), 1.0)
        return cross_entropy(
            batch.logits + share * margins[batch.target], batch.target, label_smoothing=label_smoothing
        )

    return loss


def plain(problem: Problem, *, label_smoothing: float) -> BatchLoss:  # noqa: ARG001
    """Make a cross entropy."""
    return lambda batch: cross_entropy(batch.logits, batch.target, label_smoothing=label_smoothing)


def uniform_margin(problem: Problem, *, full: float) -> BatchLoss:
    """Make a margin that is equal for all errors."""
    return margin(full=full, floor=1.0, harm=harm_matrix(problem.concern), label_smoothing=0.0)


def dangerous_margin(problem: Problem, *, full: float) -> BatchLoss:
    """Make a margin in proportion to harm."""
    return margin(full=full, floor=0.0, harm=harm_matrix(problem.concern), label_smoothing=0.0)


def floored_margin(problem: Problem, *, label_smoothing: float) -> BatchLoss:
    """Make a margin that grows with harm, and is not 0 without harm."""
    harm = harm_matrix(problem.concern)
    return margin(full=FULL_MARGIN, floor=FLOOR, harm=harm, label_smoothing=label_smoothing)


PLAIN, UNIFORM, FLOORED = "cross entropy", "margin, equal for all errors", "margin with a floor"


def _each(name: str, *values: float) -> tuple[Setting, ...]:
    return tuple(((name, value),) for value in values)


class Loss(NamedTuple):
    """A way to train."""

    make: Callable[..., BatchLoss]
    """Called with the `Problem` and a setting."""
    settings: tuple[Setting, ...]
    knows_costs: bool = True


LOSSES = {
    PLAIN: Loss(plain, _each("label_smoothing", 0.0, 0.02, 0.1), knows_costs=False),
    "logit adjustment": Loss(logit_adjustment, _each("tau", 0.5, 1.0, 1.5), knows_costs=False),
    UNIFORM: Loss(uniform_margin, _each("full", 1.0, 2.0, 4.0), knows_costs=False),
    "class weights by cost": Loss(cost_weighted, _each("released", 0.1, 0.3, 0.5)),
    "soft labels": Loss(soft_labels, _each("sharpness", 4.0, 8.0, 16.0)),
    "concern loss": Loss(concern, _each("share", 0.5, 0.8, 0.95)),
    "margin for dangerous errors": Loss(dangerous_margin, _each("full", 1.0, 2.0, 4.0)),
    FLOORED: Loss(floored_margin, _each("label_smoothing", 0.0, 0.02, 0.05)),
}
"""By the name that tables show; each has three settings, which are tried on validation samples."""


@dataclass(frozen=True)
class Training:
    """One training of one model."""

    task: str
    loss: str
    setting: Setting
    rate: float
    condition: Condition
    seed: int
    """It draws the samples of training, validation and test."""
    member: int
    """The number of the model, from 0; models of one seed differ in their first weights and the order of samples."""
    data_root: Path
    out: Path

    @property
    def path(self) -> Path:
        """The file of its outcome. Losses without costs share it between the concerns of one source."""
        task = TASKS[self.task]
        shared = task.name if LOSSES[self.loss].knows_costs else task.source or task.name
        setting = "-".join(f"{name}-{value:g}" for name, value in self.setting)
        about = f"{setting}-rate-{self.rate:g}-noise-{self.condition.noise:g}-x{self.condition.length}"
        name = f"{about}-seed{self.seed:03}-{self.member}.npz"
        return self.out / "trainings" / file_name(shared) / file_name(self.loss) / name

    def is_done(self) -> bool:
        """Return whether there is an outcome."""
        return self.path.is_file()

    def outcome(self) -> Outcome:
        """Read the outcome."""
        with np.load(self.path) as file:
            return Outcome(*(torch.from_numpy(file[name]) for name in Outcome._fields))

    def seconds(self) -> float:
        """Read how long the training took, in seconds of CPU time."""
        with np.load(self.path) as file:
            return float(file["seconds"])


def train_and_keep(training: Training) -> None:
    """Train, and keep what the model says about validation and test samples."""
    torch.set_num_threads(1)
    task = TASKS[training.task]
    parts = task.parts(training.data_root, training.seed)
    started = time.process_time()
    model = train(task, training, parts)
    seconds = time.process_time() - started
    validation, test = (outputs(model, split) for split in (parts.validation, parts.test))
    arrays = Outcome(validation, parts.validation.labels, test, parts.test.labels)._asdict()
    training.path.parent.mkdir(parents=True, exist_ok=True)
    plain_arrays = {**{name: tensor.numpy() for name, tensor in arrays.items()}, "seconds": np.array(seconds)}
    replace_whole(training.path, lambda file: np.savez(file, **plain_arrays), flush=False)


def train(task: Task, training: Training, parts: Parts) -> nn.Module:
    """Train a model: Adam, with a warmup and a cosine."""
    assert task.model is not None
    spec = task.spec(training.data_root)
    counts = parts.train.labels.bincount(minlength=len(spec.classes))
    steps = training.condition.length * task.steps
    torch.manual_seed(training.seed + ANOTHER_MEMBER * training.member)
    model = task.model(parts.train.inputs.shape[1:], len(counts))
    loss = LOSSES[training.loss].make(Problem(spec, counts, steps), **dict(training.setting))
    optimizer = Adam(model.parameters(), lr=training.rate, fused=True)
    model.train()
    strength = training.condition.noise * (1.0 if task.is_image else parts.train.inputs.std().item())
    order, place = torch.empty(0, dtype=torch.int64), 0
    for step in range(steps):
        if place + task.batch_size > len(order):
            order, place = torch.randperm(len(parts.train.labels)), 0
        index = order[place : place + task.batch_size]
        place += task.batch_size
        optimizer.param_groups[0]["lr"] = training.rate * cosine(step, steps)
        optimizer.zero_grad()
        inputs = augmented(parts.train.inputs[index], strength, is_image=task.is_image)
        loss(Batch(model(inputs), parts.train.labels[index], index, step / steps)).backward()  # type: ignore[no-untyped-call]
        if task.clip_norm is not None:
            nn.utils.clip_grad_norm_(list(model.parameters()), task.clip_norm)
        optimizer.step()
    return model


def augmented(inputs: Tensor, noise: float, *, is_image: bool) -> Tensor:
    """Return changed inputs (N, ...): images are shifted by up to ``noise`` pixels, to others noise is added."""
    if not noise:
        return inputs
    if not is_image:
        return inputs + noise * torch.randn_like(inputs)
    most, (height, width) = int(noise), inputs.shape[-2:]
    padded = pad(inputs, [most] * 4)
    shifted: Sequence[Tensor] = [
        image[..., top : top + height, left : left + width]
        for image, (top, left) in zip(padded, torch.randint(2 * most + 1, (len(inputs), 2)).tolist(), strict=True)
    ]
    return torch.stack(list(shifted))


def identity(training: Training) -> str:
    """Return what a training depends on as text."""
    return json.dumps([training.loss, training.setting, training.rate, training.condition, training.seed])
