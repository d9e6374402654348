"""The runs of a study: methods x learning rates x seeds, with the same data and budget."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.files import replace_text
from mpcs_torch.functional import accuracy, dangerous_errors, least_concern_decision, meta_pattern_concern_score
from mpcs_torch.study.learning_rates import LEARNING_RATES
from mpcs_torch.trainer.checkpoints import open_selector
from mpcs_torch.trainer.config import RunConfig, dump_config, load_packaged_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import forward_pass
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.processes import run_in_processes
from mpcs_torch.trainer.sections import ScoreConfig

WARM_COSINE = "scheduler={name: cosine, warmup_turns: 5}"
METHODS: dict[str, tuple[str, ...]] = {
    "constant": (),
    "plateau": ("scheduler={name: plateau, score: cross_entropy}",),
    "cosine": ("scheduler={name: cosine}",),
    "cosine, warmup": (WARM_COSINE,),
    "loss scale, validation": ("training.loss_scale=mpcs_count",),
    "MPCSLR, warmup": ("scheduler={name: mpcs_lr, warmup_steps: 5}",),
    "MPCSLR, warmup, smoothed": ("scheduler={name: mpcs_lr, warmup_steps: 5, smoothing: 0.8}",),
    "concern loss": (WARM_COSINE, "loss={name: concern, concern_share: 0.8, released: 0.1}"),
    "softmax margin 1": (WARM_COSINE, "loss={name: softmax_margin, margin: 1.0, released: 0.1}"),
    "softmax margin 2": (WARM_COSINE, "loss={name: softmax_margin, margin: 2.0, released: 0.1}"),
}
"""Overrides of the study's config. The loss scale is the MPCS of the validation samples at the latest turn. The losses
use the best plain schedule, so that any gain comes from the loss."""
PLAIN = ("constant", "plateau", "cosine", "cosine, warmup")
LOSSES = tuple(method for method in METHODS if method.startswith(("concern loss", "softmax margin")))
VALIDATION_SHARE = 1 / 6
DECISION_FACTORS = (1.0, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Concern of released pairs when deciding; 1 is the most probable class."""


@dataclass(frozen=True)
class Measure:
    """Metrics of a trained model on one split."""

    accuracy: float
    dangerous: int
    mpcs: float


@dataclass(frozen=True)
class Outcome:
    """The metrics of one run, by checkpoint and decision factor."""

    method: str
    learning_rate: float
    seed: int
    measures: dict[str, tuple[Measure, Measure]]
    """Validation and test, by checkpoint ("last", "selected") and decision factor, such as "last 0.5"."""


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


def study_tasks(study: str, seeds: int, data_root: Path, out: Path) -> list[StudyTask]:
    """Return a task for every method, learning rate and seed."""
    return [
        StudyTask(study, method, rate, seed, data_root, out)
        for seed in range(seeds)
        for method in METHODS
        for rate in LEARNING_RATES[study]
    ]


def confirmation_tasks(
    study: str, arms: Sequence[tuple[str, float]], seeds: range, data_root: Path, out: Path
) -> list[StudyTask]:
    """Return a task for each chosen method and learning rate under each further seed."""
    return [StudyTask(study, method, rate, seed, data_root, out) for seed in seeds for method, rate in arms]


def run_study(tasks: Sequence[StudyTask]) -> Iterator[Outcome]:
    """Finish the runs in parallel; runs that an earlier call finished are read from disk."""
    for _, outcome in run_in_processes(finish_task, tasks):
        yield outcome


def finish_task(task: StudyTask) -> Outcome:
    """Train, and measure the selected and the last checkpoint on validation and test data."""
    torch.set_num_threads(1)
    config = study_config(task)
    folder = task.out / task.name
    done, settings = folder / "outcome.json", dump_config(config)
    identity = f"{settings}{DECISION_FACTORS} {VALIDATION_SHARE}"
    if done.is_file():
        saved = json.loads(done.read_text(encoding="utf-8"))
        if saved["identity"] == identity:
            return _outcome(task, saved["measures"])
    begun = folder / "config.yaml"
    is_ours = begun.is_file() and begun.read_text(encoding="utf-8") == settings
    data = _load(task.study, task.data_root)
    fit = hold_out(data, seed=task.seed)
    run, _ = run_in_folder(config, fit, folder, overwrite=is_ours)
    selector = open_selector(config, folder)
    assert selector is not None
    assert selector.best is not None
    assert selector.last_epoch is not None
    assert fit.validation is not None
    measures = {}
    concern = config.score.concern.spec(data.class_names)
    for checkpoint, turn in (("selected", selector.best.number), ("last", selector.last_epoch)):
        run.state.model.load_state_dict(selector.load(turn)["model"])
        logits = [(_logits(run.state.model, split.inputs), split.labels) for split in (fit.validation, fit.test)]
        for factor in DECISION_FACTORS:
            measures[f"{checkpoint} {factor}"] = [
                asdict(_measure(scores, labels, concern, factor, run.config.score)) for scores, labels in logits
            ]
    text = json.dumps({"identity": identity, "measures": measures})
    replace_text(done, text)
    return _outcome(task, measures)


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


@torch.no_grad()
def _logits(model: torch.nn.Module, inputs: Tensor) -> Tensor:
    model.eval()
    return forward_pass(model, inputs)


def _measure(logits: Tensor, labels: Tensor, concern: ConcernSpec, factor: float, score: ScoreConfig) -> Measure:
    weights = concern.matrix()
    decided = least_concern_decision(logits, concern=torch.where(concern.released(), factor, 1.0))
    classes = len(weights)
    mpcs = meta_pattern_concern_score(logits, labels, num_classes=classes, k=score.k, t=score.t, concern=weights)
    return Measure(
        accuracy(decided, labels, num_classes=classes).item(),
        int(dangerous_errors(decided, labels, num_classes=classes, concern=concern.dangerous_pairs())),
        mpcs.item(),
    )


def _outcome(task: StudyTask, measures: dict[str, list[dict[str, float]]]) -> Outcome:
    plain = {name: (Measure(**parts[0]), Measure(**parts[1])) for name, parts in measures.items()}  # type: ignore[arg-type]
    return Outcome(task.method, task.learning_rate, task.seed, plain)
