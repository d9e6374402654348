"""Train many models at once: their parameters are stacked, and all take a step together.

A batch of models trains as each would train alone: each has its own samples, first weights, order and noise, from a
generator of its own. Only the loss may differ between calls. A call keeps what all its models say about validation and
test samples in one file.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize, pad
from torch.optim import Adam

from examples.benchmark.losses import LOSSES, RAMP, SCALE, LossData, Problem
from examples.benchmark.package_tables import Samples
from examples.benchmark.tasks import TASKS, Task
from mpcs_torch.io.atomic_files import replace_whole

WARMUP = 0.05
"""The share of the steps in which the learning rate rises to its full value."""
ANOTHER_MEMBER, ANOTHER_COPY = 1000, 1_000_000
"""The differences between the seeds of two models that are trained on the same samples, and of two copies of one."""
AT_ONCE = 1000
"""The number of samples of which outputs are computed at once."""
MIN_DEVIATION = 1e-6

Parameters = Mapping[str, Tensor]
"""The parameters of M models by name, (M, ...) each."""
Forward = Callable[[Parameters, Tensor], Tensor]
"""From parameters and inputs (M, B, ...) to outputs (M, B, C)."""


class Condition(NamedTuple):
    """What each training of a task may use, whatever its loss."""

    noise: float = 0.0
    """The strength of the augmentation: pixels of shifts, or shares of the standard deviation of all inputs."""
    length: int = 1
    """A multiple of the steps of the task."""


class Arm(NamedTuple):
    """A loss with a setting, a learning rate and a condition."""

    loss: str
    setting: float
    rate: float
    condition: Condition
    smoothing: float = 0.0
    """The label smoothing of a loss whose setting is another one."""


class Outcome(NamedTuple):
    """The outputs of models for the samples of validation and test."""

    validation: Tensor
    """float32 (N, C) or (members, N, C): logits."""
    validation_labels: Tensor
    """int64 (N,)."""
    test: Tensor
    test_labels: Tensor


class Model(NamedTuple):
    """What the models of one call may differ in."""

    setting: float
    """Of the loss."""
    seed: int
    """Draws the samples of training, validation and test."""
    member: int = 0
    """The number among models with the same samples: they differ in their first weights and in the order of samples."""


@dataclass(frozen=True)
class Training:
    """The training of a loss with some settings: a number of members of each setting under each seed."""

    task: str
    loss: str
    settings: tuple[float, ...]
    rate: float
    condition: Condition
    smoothing: float
    seeds: range
    members: int
    data_root: Path
    out: Path

    @property
    def path(self) -> Path:
        """The file of its outcomes. Losses without costs share it between the concerns of one source."""
        task, loss, condition = TASKS[self.task], LOSSES[self.loss], self.condition
        shared = task.name if loss.knows_costs else task.source or task.name
        settings = "-".join(f"{setting:g}" for setting in self.settings)
        steps = condition.length * task.steps
        name = f"{settings}-rate-{self.rate:g}-noise-{condition.noise:g}-steps-{steps}"
        name += f"-smoothing-{self.smoothing:g}" if self.smoothing else ""
        name += f"-seeds-{self.seeds.start}-{self.seeds.stop}-members-{self.members}.npz"
        return self.out / "trainings" / file_name(shared) / file_name(self.loss) / name

    def is_done(self) -> bool:
        """Return whether there is a file of outcomes."""
        return self.path.is_file()

    def outcome(self, setting: float, seed: int) -> Outcome:
        """Read the outcome of a setting and a seed, with logits (members, N, C)."""
        names = (f"validation-{setting:g}-{seed}", f"validation-{seed}", f"test-{setting:g}-{seed}", f"test-{seed}")
        with np.load(self.path) as file:
            return Outcome(*(torch.from_numpy(file[name]) for name in names))

    def seconds(self) -> float:
        """Read the CPU seconds of one model."""
        with np.load(self.path) as file:
            return float(file["seconds"])

    def run(self) -> None:
        """Train, and keep what the models say about validation and test samples."""
        groups = [(setting, seed) for setting in self.settings for seed in self.seeds]
        models = [Model(*group, member) for group in groups for member in range(self.members)]
        started = time.process_time()
        arm = (self.loss, self.rate, self.condition, self.smoothing)
        fleet = Fleet(TASKS[self.task], *arm, models, self.data_root)
        fleet.train()
        seconds = (time.process_time() - started) / len(models)
        arrays = {"seconds": np.array(seconds)}
        for place, (setting, seed) in enumerate(groups):
            first = place * self.members
            for part, places in (("validation", fleet.parts[first].validation), ("test", fleet.parts[first].test)):
                logits = [fleet.outputs(first + member, places) for member in range(self.members)]
                arrays[f"{part}-{setting:g}-{seed}"] = torch.stack(logits).numpy()
                arrays[f"{part}-{seed}"] = fleet.labels[places].numpy()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays), flush=False)


def file_name(name: str) -> str:
    """Return a name with nothing but letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


class Fleet:
    """Models that train together with one loss, learning rate and condition."""

    def __init__(
        self,
        task: Task,
        loss: str,
        rate: float,
        condition: Condition,
        smoothing: float,
        models: Sequence[Model],
        root: Path,
    ) -> None:
        samples, spec = task.samples(root), task.spec(root)
        self._task, self._rate = task, rate
        self._steps = condition.length * task.steps
        self.labels, self._row_costs = samples.labels, samples.costs
        by_seed = {model.seed: task.parts(root, model.seed) for model in models}
        self.parts = [by_seed[model.seed] for model in models]
        counts = [self.labels[part.train].bincount(minlength=len(spec.classes)) for part in self.parts]
        problems = [Problem(spec, each, smoothing) for each in counts]
        data = [LOSSES[loss].make(*each) for each in zip(problems, [model.setting for model in models], strict=True)]
        # Copies of a model follow it in the stack. They begin with the same weights, and have orders of their own.
        self._branches = data[0].branches
        rows = [row for row in range(len(models)) for _ in range(self._branches)]
        copies = [copy for _ in models for copy in range(self._branches)]
        seeds = [model.seed + ANOTHER_MEMBER * model.member for model in models]
        self._generators = [
            torch.Generator().manual_seed(seeds[row] + ANOTHER_COPY * copy)
            for row, copy in zip(rows, copies, strict=True)
        ]
        self._trains = [self.parts[row].train for row in rows]
        self._loss = StackedLoss([data[row] for row in rows])
        self._inputs = _Inputs(task, samples, self._trains, condition.noise)
        networks = []
        for row in rows:
            torch.manual_seed(seeds[row])
            networks.append(task.model(samples.inputs.shape[1:], len(spec.classes)))
        self._network = networks[0]
        self._forward = forward_of(self._network)
        of_networks = [dict(network.named_parameters()) for network in networks]
        self._parameters = {
            name: torch.stack([parameters[name].detach() for parameters in of_networks]).requires_grad_()
            for name in of_networks[0]
        }

    def train(self) -> None:
        """Train all models: Adam, with a warmup and a cosine."""
        weights = list(self._parameters.values())
        optimizer = Adam(weights, lr=self._rate, fused=True)
        orders = self._orders()
        for step in range(self._steps):
            if step == self._steps // 2 and self._branches > 1:
                self._spread(weights, lambda copies: copies[:, :1])
                for state in optimizer.state.values():
                    self._spread([state["exp_avg"], state["exp_avg_sq"]], lambda copies: copies[:, :1])
            places = orders[:, step]
            inputs = self._inputs.augmented(places, self._generators)
            optimizer.param_groups[0]["lr"] = self._rate * cosine(step, self._steps)
            self._backward(inputs, places, step / self._steps)
            if self._loss.is_sharpness_aware:
                moves = uphill(weights, self._loss.radius)
                with torch.no_grad():
                    torch._foreach_add_(weights, moves)
                self._backward(inputs, places, step / self._steps)
                with torch.no_grad():
                    torch._foreach_sub_(weights, moves)
            if self._task.clip_norm is not None:
                clip_each(weights, self._task.clip_norm)
            optimizer.step()
        if self._branches > 1:
            self._spread(weights, lambda copies: copies.mean(dim=1, keepdim=True))

    def _orders(self) -> Tensor:
        """Return the places of the samples of each step, int32 (M, steps, batch): pass by pass, without the rest."""
        orders = []
        for train, generator in zip(self._trains, self._generators, strict=True):
            size = self._task.batch_size
            in_pass = len(train) // size
            passes = [
                train[torch.randperm(len(train), generator=generator)[: in_pass * size]].int()
                for _ in range(-(-self._steps // in_pass))
            ]
            orders.append(torch.cat(passes)[: self._steps * size].reshape(self._steps, size))
        return torch.stack(orders)

    def _backward(self, inputs: Tensor, places: Tensor, progress: float) -> None:
        """Set the gradients of all models."""
        for weight in self._parameters.values():
            weight.grad = None
        labels = self.labels[places]
        losses = self._loss(self._forward(self._parameters, inputs), labels, progress)
        if self._loss.is_by_row:
            assert self._row_costs is not None
            losses = losses * self._row_costs[places, labels] / self._row_costs.mean()
        # The sum over models: each model has the gradient of its own mean.
        losses.mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _spread(self, tensors: Sequence[Tensor], change: Callable[[Tensor], Tensor]) -> None:
        """Replace the tensors of copies: ``change`` gets (models, copies, ...)."""
        for tensor in tensors:
            copies = tensor.view(-1, self._branches, *tensor.shape[1:])
            copies.copy_(change(copies).expand_as(copies).clone())

    @torch.no_grad()
    def outputs(self, model: int, places: Tensor) -> Tensor:
        """Return the logits of one model for the samples at ``places``: (N, C)."""
        row = model * self._branches
        parameters = {name: tensor[row] for name, tensor in self._parameters.items()}
        outputs = [
            functional_call(self._network, parameters, (self._inputs.scaled(part, row),))
            for part in torch.split(places, AT_ONCE)
        ]
        return self._loss.logits(torch.cat(outputs), row)


def forward_of(network: nn.Module) -> Forward:
    """Return the function that applies M models at once; torch.func cannot stack recurrent networks."""

    def call(parameters: Parameters, inputs: Tensor) -> Tensor:
        outputs: Tensor = functional_call(network, dict(parameters), (inputs,))
        return outputs

    if not any(isinstance(module, nn.RNNBase) for module in network.modules()):
        return torch.vmap(call)

    def one_by_one(parameters: Parameters, inputs: Tensor) -> Tensor:
        rows = zip(*(tensor.unbind() for tensor in parameters.values()), strict=True)
        models = [dict(zip(parameters, row, strict=True)) for row in rows]
        return torch.stack([call(model, each) for model, each in zip(models, inputs, strict=True)])

    return one_by_one


class StackedLoss:
    """The losses of the samples of M models; see the top of `losses.py`."""

    def __init__(self, data: Sequence[LossData]) -> None:
        first = data[0]
        self._classes = len(first.weights)
        self._rows = self._classes * torch.arange(len(data)).unsqueeze(1)

        def matrices(name: str) -> Tensor:
            return torch.stack([getattr(each, name) for each in data]).reshape(-1, self._classes)

        self._labels, self._added, self._errors = matrices("labels"), matrices("added"), matrices("errors")
        self._weights = torch.stack([each.weights for each in data]).flatten()
        self._powers = torch.stack([each.powers for each in data]).unsqueeze(1)
        self._frames = torch.stack([each.frame for each in data]).mT
        self._has_frame, self._is_ramped = first.has_frame, first.is_ramped
        self._is_logarithmic = first.is_logarithmic
        self._has_errors, self._has_powers = bool(self._errors.any()), bool(self._powers.any())
        self.is_by_row = first.is_by_row
        self.radius = torch.tensor([each.radius for each in data])
        self.is_sharpness_aware = bool(self.radius.any())

    def __call__(self, outputs: Tensor, target: Tensor, progress: float) -> Tensor:
        """Return losses (M, B) of outputs (M, B, C) for labels (M, B); progress is the share of steps, in [0, 1)."""
        rows = target + self._rows  # of the stacked matrices
        begin, end = RAMP
        share = min(max((progress - begin) / (end - begin), 0.0), 1.0) if self._is_ramped else 1.0
        logits = SCALE * normalize(outputs, dim=-1) @ self._frames if self._has_frame else outputs
        log_probs = torch.add(logits, self._added[rows], alpha=share).log_softmax(dim=-1)
        losses = -self._weights[rows] * (self._labels[rows] * log_probs).sum(dim=-1)
        if self._has_errors:
            wrong = logits.softmax(dim=-1)
            if self._is_logarithmic:
                wrong = -torch.log1p(-wrong.clamp(max=1 - 1e-6))
            losses = losses + (self._errors[rows] * wrong).sum(dim=-1)
        if self._has_powers:
            losses = losses * (self._powers * log_probs.detach()).sum(dim=-1).exp()
        return losses

    def logits(self, outputs: Tensor, model: int) -> Tensor:
        """Return the logits of the outputs (N, C) of one model."""
        return SCALE * normalize(outputs, dim=-1) @ self._frames[model] if self._has_frame else outputs


class _Inputs:
    """The inputs of M models: standardized by the training samples of each, and augmented."""

    def __init__(self, task: Task, samples: Samples, trains: Sequence[Tensor], noise: float) -> None:
        self._values, self._noise = samples.inputs, noise
        self._scale: tuple[Tensor, Tensor] | None = None
        shape = samples.inputs.shape[1:]
        if task.is_scaled:
            means = torch.stack([self._values[train].mean(dim=0) for train in trains]).unsqueeze(1)
            deviations = torch.stack([self._values[train].std(dim=0) for train in trains]).unsqueeze(1)
            self._scale = means, deviations.clamp(min=MIN_DEVIATION)
        self._pixels = int(noise) if task.is_image else 0
        if self._pixels:
            # All stretches of pixels that are as long as a row of an image: the rows of a shifted image are among them.
            self._padded = pad(self._values, [self._pixels] * 4)
            pixels = self._padded.flatten()
            width = shape[-1]
            self._stretches = pixels.as_strided((len(pixels) - width + 1, width), (1, 1))
        elif noise and not task.is_scaled:
            self._deviations = torch.stack([self._values[train].std() for train in trains])
        elif noise:
            self._deviations = torch.ones(len(trains))

    def scaled(self, places: Tensor, model: int) -> Tensor:
        """Return the inputs (N, ...) of one model."""
        inputs = self._values[places]
        if self._scale is None:
            return inputs
        means, deviations = self._scale
        return (inputs - means[model]) / deviations[model]

    def augmented(self, places: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        """Return inputs (M, B, ...) of samples (M, B): images are shifted, to others noise is added."""
        if self._pixels:
            return self._shifted(places, generators)
        inputs = self._values[places]
        if self._scale is not None:
            means, deviations = self._scale
            inputs = (inputs - means) / deviations
        if self._noise:
            noise = torch.empty_like(inputs)
            for of_model, generator in zip(noise, generators, strict=True):
                of_model.normal_(generator=generator)
            strength = (self._noise * self._deviations).reshape(-1, *[1] * (inputs.ndim - 1))
            inputs = torch.addcmul(inputs, noise, strength)
        return inputs

    def _shifted(self, places: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        sizes = (2, places.shape[1])
        shifts = [torch.randint(2 * self._pixels + 1, sizes, generator=each) for each in generators]
        down, right = torch.stack(shifts, dim=1)
        image, channel, row, _ = self._padded.stride()
        begins = places * image + down * row + right
        channels, height, width = self._values.shape[1:]
        in_image = channel * torch.arange(channels).unsqueeze(1) + row * torch.arange(height)
        rows = (begins.unsqueeze(-1) + in_image.flatten()).flatten()
        return self._stretches.index_select(0, rows).view(*places.shape, channels, height, width)


def _norms(gradients: Sequence[Tensor]) -> Tensor:
    """Return the norm of all gradients of each model together: (M,)."""
    return torch.stack([gradient.flatten(1).square().sum(dim=1) for gradient in gradients]).sum(dim=0).sqrt()


def _gradients(weights: Sequence[Tensor]) -> list[Tensor]:
    return [weight.grad for weight in weights if weight.grad is not None]


def _of_models(values: Tensor, like: Tensor) -> Tensor:
    """Reshape values (M,) so that they multiply a tensor (M, ...)."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def clip_each(weights: Sequence[Tensor], clip_norm: float) -> None:
    """Scale down the gradients of each model whose norm is above ``clip_norm``."""
    gradients = _gradients(weights)
    factors = (clip_norm / (_norms(gradients) + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(_of_models(factors, gradient))


def uphill(weights: Sequence[Tensor], radius: Tensor) -> list[Tensor]:
    """Return the step of length ``radius`` (M,) in the direction of the gradient, for each model."""
    gradients = _gradients(weights)
    factors = radius / (_norms(gradients) + 1e-12)
    return [gradient * _of_models(factors, gradient) for gradient in gradients]


def cosine(step: int, steps: int) -> float:
    """Return the share of the full learning rate at a step."""
    warmup = max(1, round(WARMUP * steps))
    return min(1.0, (step + 1) / warmup) * (0.5 + 0.5 * cos(pi * step / steps))
