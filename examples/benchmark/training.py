"""The trainings of the benchmark: each keeps what its models say about validation and test samples in one file."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from examples.benchmark.fleets import Fleet, Model, Regime
from examples.benchmark.losses import LOSSES
from examples.benchmark.tasks import TASKS
from mpcs_torch.io.atomic_files import replace_file


class Outcome(NamedTuple):
    """The outputs of models for the samples of validation and test."""

    validation: Tensor
    """float32 (N, C) or (members, N, C): logits."""
    validation_labels: Tensor
    """int64 (N,)."""
    test: Tensor
    test_labels: Tensor


@dataclass(frozen=True)
class Training:
    """The training of a loss with some settings: a number of members of each setting under each seed."""

    task: str
    regime: Regime
    settings: tuple[float, ...]
    seeds: range
    members: int
    data_root: Path
    out: Path

    @property
    def path(self) -> Path:
        """The file of its outcomes. Losses without costs share it between the concerns of one source."""
        task, (loss, rate, condition, smoothing) = TASKS[self.task], self.regime
        shared = task.name if LOSSES[loss].knows_costs else task.source or task.name
        steps = condition.length * task.steps
        settings = "-".join(f"{setting:g}" for setting in self.settings)
        name = f"{settings}-rate-{rate:g}-noise-{condition.noise:g}-steps-{steps}"
        if smoothing:
            name += f"-smoothing-{smoothing:g}"
        name += f"-seeds-{self.seeds.start}-{self.seeds.stop}-members-{self.members}.npz"
        return self.out / "trainings" / file_name(shared) / file_name(loss) / name

    def is_done(self) -> bool:
        """Return whether there is a file of outcomes."""
        return self.path.is_file()

    def outcome(self, setting: float, seed: int) -> Outcome:
        """Read the outcome of a setting and a seed, with logits (members, N, C)."""
        names = (
            f"validation-{setting:g}-{seed}",
            f"validation-{seed}",
            f"test-{setting:g}-{seed}",
            f"test-{seed}",
        )
        with np.load(self.path) as file:
            return Outcome(*(torch.from_numpy(file[name]) for name in names))

    def seconds(self) -> float:
        """Read the CPU seconds of one model."""
        with np.load(self.path) as file:
            return float(file["seconds"])

    def run(self) -> None:
        """Train, and keep what the models say about validation and test samples."""
        groups = [(setting, seed) for setting in self.settings for seed in self.seeds]
        models = [
            Model(*group, member) for group in groups for member in range(self.members)
        ]
        started = time.process_time()
        fleet = Fleet(TASKS[self.task], self.regime, models, self.data_root)
        fleet.train()
        arrays = {"seconds": np.array((time.process_time() - started) / len(models))}
        for place, (setting, seed) in enumerate(groups):
            first = place * self.members
            _, *parts = fleet.parts[first]
            for name, places in zip(("validation", "test"), parts, strict=True):
                logits = [
                    fleet.outputs(first + member, places) for member in range(self.members)
                ]
                arrays[f"{name}-{setting:g}-{seed}"] = torch.stack(logits).numpy()
                arrays[f"{name}-{seed}"] = fleet.labels[places].numpy()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(
            self.path,
            lambda file: np.savez(file, allow_pickle=False, **arrays),
            flush=False,
        )


def file_name(name: str) -> str:
    """Return a name with nothing but letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
