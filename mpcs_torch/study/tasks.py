"""The runs of a study, and what each way of deciding by a trained model measures."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import accuracy, dangerous_errors, least_concern_decision, meta_pattern_concern_score
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.processes.pool import run_in_processes
from mpcs_torch.study.plans import METHODS, STUDIES
from mpcs_torch.trainer.config.run import RunConfig, dump_config, load_packaged_config
from mpcs_torch.trainer.config.sections import ScoreConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import forward_pass
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import PreparedRun
from mpcs_torch.trainer.prepare import resolved_config
from mpcs_torch.trainer.resume import open_selector

DECISION_FACTORS = (1.0, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Concern of released pairs when deciding; 1 is the most probable class."""
Checkpoint = Literal["last", "selected"]
CHECKPOINTS: tuple[Checkpoint, ...] = get_args(Checkpoint)


class Way(NamedTuple):
    """A way of deciding by a trained model."""

    checkpoint: Checkpoint = "last"
    calibrated: bool = False
    """Whether the logits are divided by a temperature that was fitted on validation data."""
    factor: float = 1.0
    """The concern of released pairs; 1 decides for the most probable class."""

    def __str__(self) -> str:
        return f"{self.checkpoint} {'calibrated' if self.calibrated else 'raw'} {self.factor}"


WAYS = tuple(Way(*settings) for settings in product(CHECKPOINTS, (False, True), DECISION_FACTORS))


@dataclass(frozen=True)
class Measure:
    """Metrics of a trained model on one split."""

    accuracy: float
    dangerous: int
    mpcs: float


def measure_checkpoints(run: PreparedRun, data: DataSplits, folder: Path) -> dict[Way, tuple[Measure, Measure]]:
    """Measure every way of deciding by the checkpoints of a run, on validation and on test data."""
    selector = open_selector(run.config, folder)
    assert selector is not None
    assert selector.best is not None
    assert data.validation is not None
    concern = run.config.score.concern.spec(data.class_names)
    epochs: dict[Checkpoint, int] = {"selected": selector.best.number, "last": selector.epochs[-1].number}
    model, precision = run.state.measured.eval(), run.state.precision
    measures: dict[Way, tuple[Measure, Measure]] = {}
    for checkpoint, epoch in epochs.items():
        model.load_state_dict(selector.load(epoch)["model"])
        with torch.no_grad():
            samples = (data.validation, data.test)
            splits = [(forward_pass(model, split.inputs, precision), split.labels) for split in samples]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # no error on validation data: the temperature is 1
            temperature = TemperatureScaling().fit(*splits[0])
        for calibrated in (False, True):
            validation, test = (
                _measures(temperature(logits) if calibrated else logits, labels, concern, run.config.score)
                for logits, labels in splits
            )
            for factor in DECISION_FACTORS:
                measures[Way(checkpoint, calibrated, factor)] = validation[factor], test[factor]
    return measures


def _measures(logits: Tensor, labels: Tensor, concern: ConcernSpec, score: ScoreConfig) -> dict[float, Measure]:
    """Measure the decisions with each decision factor; the factors share softmax and MPCS."""
    released, dangerous, classes = concern.released(), concern.dangerous_pairs(), len(concern.classes)
    mpcs = meta_pattern_concern_score(
        logits, labels, num_classes=classes, k=score.k, t=score.t, concern=concern.matrix()
    ).item()
    probs = logits.softmax(dim=1)
    measures = {}
    for factor in DECISION_FACTORS:
        weights = torch.where(released, factor, 1.0)
        decided = least_concern_decision(probs, concern=weights, from_logits=False)
        right = accuracy(decided, labels, num_classes=classes).item()
        grave = dangerous_errors(decided, labels, num_classes=classes, concern=dangerous)
        measures[factor] = Measure(right, int(grave), mpcs)
    return measures


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
    arms = list(product(STUDIES[study].methods, STUDIES[study].learning_rates))
    return tuned_tasks(study, arms, range(seeds), data_root, out)


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
            pairs = {way: saved["measures"][str(way)] for way in WAYS}
            measures = {way: (Measure(**pair[0]), Measure(**pair[1])) for way, pair in pairs.items()}
            return Outcome(task.method, task.learning_rate, task.seed, measures)
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
