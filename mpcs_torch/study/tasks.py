"""The runs of a study: methods x learning rates x seeds, with the same data and budget."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.processes.pool import run_in_processes
from mpcs_torch.study.plans import METHODS, STUDIES
from mpcs_torch.study.ways import WAYS, Measure, Way, measure_checkpoints
from mpcs_torch.trainer.config.run import RunConfig, dump_config, load_packaged_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.prepare import resolved_config

VALIDATION_SHARE = 1 / 6


@dataclass(frozen=True)
class Outcome:
    """The metrics of one run, by way of deciding."""

    method: str
    learning_rate: float
    seed: int
    measures: dict[Way, tuple[Measure, Measure]]
    """Validation and test."""


@dataclass(frozen=True)
class StudyTask:
    """One run of a study."""

    study: str
    method: str
    learning_rate: float
    seed: int
    data_root: Path
    out: Path

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        method = "-".join(self.method.replace(",", "").split())
        return f"{method}-lr{self.learning_rate}-seed{self.seed:02}"


def tuning_tasks(study: str, seeds: int, data_root: Path, out: Path) -> list[StudyTask]:
    """Return a task for every method, learning rate and seed."""
    return [
        StudyTask(study, method, rate, seed, data_root, out)
        for seed in range(seeds)
        for method in STUDIES[study].methods
        for rate in STUDIES[study].learning_rates
    ]


def tuned_tasks(
    study: str, arms: Sequence[tuple[str, float]], seeds: range, data_root: Path, out: Path
) -> list[StudyTask]:
    """Return a task for each method and its learning rate under each further seed."""
    return [StudyTask(study, method, rate, seed, data_root, out) for seed in seeds for method, rate in arms]


def run_study(tasks: Sequence[StudyTask]) -> Iterator[Outcome]:
    """Finish the runs in parallel; runs that an earlier call finished are read from disk."""
    for _, outcome in run_in_processes(finish_task, tasks):
        yield outcome


def finish_task(task: StudyTask) -> Outcome:
    """Train, and measure the selected and the last checkpoint on validation and test data."""
    torch.set_num_threads(1)
    data = _load(task.study, task.data_root)
    config = resolved_config(study_config(task), data)
    folder = task.out / task.name
    done, settings = folder / "outcome.json", dump_config(config)
    identity = f"{settings}{list(map(str, WAYS))} {VALIDATION_SHARE}"
    if done.is_file():
        saved = json.loads(done.read_text(encoding="utf-8"))
        if saved["identity"] == identity:
            return _read_outcome(task, saved["measures"])
    begun = folder / "config.yaml"
    is_ours = begun.is_file() and begun.read_text(encoding="utf-8") == settings
    fit = hold_out(data, seed=task.seed)
    run, _ = run_in_folder(config, fit, folder, overwrite=is_ours, flush=False)
    measures = measure_checkpoints(run, fit, folder)
    plain = {str(way): [asdict(measure) for measure in pair] for way, pair in measures.items()}
    replace_text(done, json.dumps({"identity": identity, "measures": plain}))
    return Outcome(task.method, task.learning_rate, task.seed, measures)


def study_config(task: StudyTask) -> RunConfig:
    """Load the config of a task."""
    overrides = [f"name={task.name}", f"seed={task.seed}", f"training.learning_rate={task.learning_rate}"]
    return load_packaged_config(f"studies/{task.study}", [*overrides, *METHODS[task.method]])


@lru_cache(maxsize=1)
def _load(study: str, data_root: Path) -> DataSplits:
    """Load the data once in each process; nothing writes to the tensors."""
    return load_packaged_config(f"studies/{study}", []).data.load(data_root)


def hold_out(data: DataSplits, *, seed: int) -> DataSplits:
    """Move a random sixth of the training samples to the validation split."""
    order = torch.randperm(len(data.train.labels), generator=torch.Generator().manual_seed(seed))
    size = round(len(order) * VALIDATION_SHARE)
    return replace(data, train=data.train.at(order[size:]), validation=data.train.at(order[:size]))


def _read_outcome(task: StudyTask, saved: dict[str, list[dict[str, Any]]]) -> Outcome:
    measures = {way: (Measure(**saved[str(way)][0]), Measure(**saved[str(way)][1])) for way in WAYS}
    return Outcome(task.method, task.learning_rate, task.seed, measures)
