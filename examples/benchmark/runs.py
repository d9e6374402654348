"""The runs of the benchmark: each trains one model, or several, and keeps what it says about samples in one file."""

import hashlib
import json
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from examples.benchmark.methods import Batch, Method, Problem, costs_of, method_of
from examples.benchmark.tasks import TASKS, Parts, Task
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.metrics.register import find_entry
from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.loop import inputs_from_logits

WARMUP = 0.05
"""The share of the steps in which the learning rate rises to its full value."""
LOOKS = 25
"""The number of looks of methods that follow a validation metric."""
MEMORY = 0.6
"""The weight of the past in the validation metric that they follow, as an exponential moving average."""


@dataclass(frozen=True)
class Run:
    """One method with one setting, on one task, under one seed."""

    task: str
    method: str
    setting: int
    """From 0: settings of the method, and learning rates of the task within each."""
    seed: int
    data_root: Path
    out: Path

    @property
    def path(self) -> Path:
        """The file of its outcome."""
        task, method = TASKS[self.task], method_of(self.method)
        shared = task.source if method.is_plain and task.source else task.name
        name = f"{file_name(self.method)}-{self.setting}-seed{self.seed:03}.npz"
        return self.out / "runs" / file_name(shared) / name

    def is_done(self) -> bool:
        """Tell whether there is an outcome that was made as asked for."""
        if not self.path.is_file():
            return False
        with np.load(self.path) as file:
            return str(file["identity"]) == self.identity

    @property
    def identity(self) -> str:
        """All that its outcome depends on, but for the code of this package."""
        task, method = TASKS[self.task], method_of(self.method)
        setting, rate = setting_of(task, method, self.setting)
        about = [setting, rate, self.seed, task.steps, task.batch_size, task.shares, task.clip_norm, method.members]
        if ":" in self.method:
            import inspect

            source = inspect.getsourcefile(method.loss)
            about.append(hashlib.sha256(Path(source or "").read_bytes()).hexdigest())
        return json.dumps(about)


def file_name(name: str) -> str:
    """Return a name with nothing but letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


class Outcome(NamedTuple):
    """The outputs of a run for the samples of validation and test."""

    validation: Tensor
    """float32 (N, C): logits."""
    validation_labels: Tensor
    """int64 (N,)."""
    test: Tensor
    test_labels: Tensor


def setting_of(task: Task, method: Method, number: int) -> tuple[dict[str, float], float]:
    """Return the setting of a number, and its learning rate."""
    setting, rate = divmod(number, len(task.learning_rates))
    return dict(method.settings[setting]), task.learning_rates[rate]


def outcome_of(run: Run) -> Outcome:
    """Read the outcome of a run that is done."""
    with np.load(run.path) as file:
        return Outcome(*(torch.from_numpy(file[name]) for name in Outcome._fields))


def train_and_keep(run: Run) -> None:
    """Train, and keep what the model says about validation and test samples."""
    torch.set_num_threads(1)
    task, method = TASKS[run.task], method_of(run.method)
    parts = task.parts(run.data_root, run.seed)
    concern = task.spec(run.data_root)
    counts = parts.train.labels.bincount(minlength=len(concern.classes))
    setting, rate = setting_of(task, method, run.setting)
    said: list[list[Tensor]] = []
    for member in range(method.members):
        problem = Problem(concern, counts, task.steps, member)
        if task.estimator is not None:
            said.append(_of_estimator(task, setting, parts, problem, run.seed))
        else:
            model = train(task, method, setting, rate, parts, problem, seed=1000 * member + run.seed)
            said.append([outputs(model, split) for split in (parts.validation, parts.test)])
    validation, test = (method.combine([of_member[part] for of_member in said], problem) for part in (0, 1))
    arrays = Outcome(validation, parts.validation.labels, test, parts.test.labels)._asdict()
    run.path.parent.mkdir(parents=True, exist_ok=True)
    plain = {**{name: tensor.numpy() for name, tensor in arrays.items()}, "identity": np.array(run.identity)}
    replace_whole(run.path, lambda file: np.savez(file, **plain), flush=False)


def _of_estimator(task: Task, setting: dict[str, float], parts: Parts, problem: Problem, seed: int) -> list[Tensor]:
    """Return the logarithms of the probabilities that an estimator gives, none of them 0."""
    assert task.estimator is not None
    train, *others = [Split(split.inputs.flatten(1), split.labels) for split in parts]
    estimator = task.estimator(setting["leaf"], seed)
    costs = torch.ones(len(problem.class_counts))
    if "released" in setting:
        costs = costs_of(problem.concern, setting["released"]).sum(dim=1)
    estimator.fit(train.inputs.numpy(), train.labels.numpy(), sample_weight=costs[train.labels].numpy())
    probs = [torch.as_tensor(estimator.predict_proba(split.inputs.numpy())) for split in others]
    return [(each + 1e-4).log().float() for each in probs]


@torch.no_grad()
def outputs(model: nn.Module, split: Split) -> Tensor:
    """Return the outputs of a model for samples: (N, K)."""
    model.eval()
    return torch.cat([model(inputs) for inputs in torch.split(split.inputs, 1000)])


def train(
    task: Task, method: Method, setting: dict[str, float], rate: float, parts: Parts, problem: Problem, *, seed: int
) -> nn.Module:
    """Train a model: Adam, with a warmup and a cosine unless the method follows a validation metric."""
    assert task.model is not None
    torch.manual_seed(seed)
    model = task.model(parts.train.inputs.shape[1:], len(problem.class_counts) + method.extra_outputs)
    model = model.to(memory_format=torch.channels_last)  # a step of a CNN takes a quarter less
    patience, decay = setting.pop("patience", 0), setting.pop("averaging", 0.0)
    loss = method.loss(problem, **setting)
    weights: list[Tensor] = list(model.parameters())
    optimizer = Adam(weights, lr=rate, fused=True)
    average = [weight.detach().clone() for weight in weights] if decay else []
    follower = None if method.plateau is None else _Follower(optimizer, method, int(patience), parts, problem)
    model.train()
    order, place = torch.empty(0, dtype=torch.int64), 0
    for step in range(task.steps):
        if place + task.batch_size > len(order):
            order, place = torch.randperm(len(parts.train.labels)), 0
        index = order[place : place + task.batch_size]
        place += task.batch_size
        if follower is None:
            optimizer.param_groups[0]["lr"] = rate * cosine(step, task.steps)
        elif step and step % (task.steps // LOOKS) == 0 and follower.look(model):
            break
        optimizer.zero_grad()
        batch = Batch(model(parts.train.inputs[index]), parts.train.labels[index], index, step / task.steps)
        loss(batch).backward()  # type: ignore[no-untyped-call]
        if task.clip_norm is not None:
            nn.utils.clip_grad_norm_(weights, task.clip_norm)
        optimizer.step()
        if decay:
            torch._foreach_lerp_(average, weights, max(1 - decay, 1 / (step + 1)))
    for weight, mean in zip(weights, average, strict=False):
        weight.data.copy_(mean)
    if follower is not None and method.stops:
        model.load_state_dict(follower.best)
    return model


def cosine(step: int, steps: int) -> float:
    """Return the share of the full learning rate at a step."""
    warmup = max(1, round(WARMUP * steps))
    return min(1.0, (step + 1) / warmup) * (0.5 + 0.5 * cos(pi * step / steps))


class _Follower:
    """Follows a smoothed validation metric: lowers the learning rate, or keeps the best weights, when it gets worse."""

    def __init__(self, optimizer: Optimizer, method: Method, patience: int, parts: Parts, problem: Problem) -> None:
        self._method, self._patience, self._parts, self._problem = method, patience, parts, problem
        self._scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=patience)
        self._smoothed: float | None = None
        self._lowest, self._waited = float("inf"), 0
        self.best: dict[str, Tensor] = {}

    def look(self, model: nn.Module) -> bool:
        """Look at the metric; return whether training should end."""
        value = self._value(outputs(model, self._parts.validation))
        model.train()
        self._smoothed = value if self._smoothed is None else MEMORY * self._smoothed + (1 - MEMORY) * value
        if self._smoothed < self._lowest:
            self._lowest, self._waited = self._smoothed, 0
            self.best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        else:
            self._waited += 1
        if self._method.stops:
            return self._waited > 2 * self._patience
        self._scheduler.step(self._smoothed)
        return False

    def _value(self, logits: Tensor) -> float:
        """Return the value of the metric, lower is better."""
        assert self._method.plateau is not None
        concern, entry = self._problem.concern, find_entry(self._method.plateau)
        metric = entry.make(len(concern.classes), concern=concern)
        metric.update(inputs_from_logits(logits, [entry.takes])[entry.takes], self._parts.validation.labels)
        return entry.value(metric) if entry.direction == "min" else -entry.value(metric)
