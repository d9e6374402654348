"""Which ways of learning with human values help: methods x learning rates x seeds on the same data and budget."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.files import replace_text
from mpcs_torch.functional import confusion_matrix, least_concern_decision, meta_pattern_concern_score
from mpcs_torch.functional.concern.dangerous import count_dangerous_cells
from mpcs_torch.study.learning_rates import LEARNING_RATES
from mpcs_torch.trainer.checkpoints import open_selector
from mpcs_torch.trainer.config import RunConfig, dump_config, load_packaged_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import forward_pass
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.processes import run_in_processes

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
stand on the plain schedule that does best, so that what they gain is theirs."""
PLAIN = ("constant", "plateau", "cosine", "cosine, warmup")
LOSSES = tuple(method for method in METHODS if method.startswith(("concern loss", "softmax margin")))
VALIDATION_SHARE = 1 / 6
DECISION_FACTORS = (1.0, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Concern of released pairs when deciding; 1 is the most probable class."""


@dataclass(frozen=True)
class Measure:
    """A trained model on a part of the data."""

    accuracy: float
    dangerous: int
    mpcs: float


@dataclass(frozen=True)
class Outcome:
    """One run: what each checkpoint and decision measures on validation and test data."""

    method: str
    learning_rate: float
    seed: int
    measures: dict[str, tuple[Measure, Measure]]
    """Validation and test, by checkpoint ("last", "selected") and decision factor, such as "last 0.5"."""


@dataclass(frozen=True)
class StudyTask:
    """A run to finish."""

    study: str
    method: str
    learning_rate: float
    seed: int
    data_root: Path
    out: Path

    @property
    def name(self) -> str:
        """The run's folder."""
        method = "-".join(self.method.replace(",", "").split())
        return f"{method}-lr{self.learning_rate}-seed{self.seed:02}"


def study_tasks(study: str, seeds: int, data_root: Path, out: Path) -> list[StudyTask]:
    """Every method at every learning rate under every seed."""
    return [
        StudyTask(study, method, rate, seed, data_root, out)
        for seed in range(seeds)
        for method in METHODS
        for rate in LEARNING_RATES[study]
    ]


def confirmation_tasks(
    study: str, arms: Sequence[tuple[str, float]], seeds: range, data_root: Path, out: Path
) -> list[StudyTask]:
    """Methods with their learning rates, under further seeds."""
    return [StudyTask(study, method, rate, seed, data_root, out) for seed in seeds for method, rate in arms]


def run_study(tasks: Sequence[StudyTask]) -> Iterator[Outcome]:
    """Finish the runs in parallel; runs that an earlier call finished are read."""
    for _, outcome in run_in_processes(finish_task, tasks):
        yield outcome


def finish_task(task: StudyTask) -> Outcome:
    """Train on the training part, validate on the validation part, and measure both and the test part at the end."""
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
    run = run_in_folder(config, fit, folder, overwrite=is_ours)
    assert config.selector is not None
    selector = open_selector(config.selector, folder)
    assert selector.best is not None
    assert selector.last_epoch is not None
    measures = {}
    concern = run.evaluator.concern
    for checkpoint, turn in (("selected", selector.best.number), ("last", selector.last_epoch)):
        run.state.model.load_state_dict(selector.load(turn)["model"])
        logits = [_logits(run.state.model, inputs) for inputs in (fit.test_inputs, data.test_inputs)]
        for factor in DECISION_FACTORS:
            measures[f"{checkpoint} {factor}"] = [
                asdict(_measure(part, labels, concern.matrix(), concern.released(), factor, run.evaluator.k, config))
                for part, labels in zip(logits, (fit.test_labels, data.test_labels), strict=True)
            ]
    text = json.dumps({"identity": identity, "measures": measures})
    replace_text(done, text)
    return _outcome(task, measures)


def study_config(task: StudyTask) -> RunConfig:
    """The config that a task trains with."""
    overrides = [f"name={task.name}", f"seed={task.seed}", f"training.learning_rate={task.learning_rate}"]
    return load_packaged_config(f"studies/{task.study}", [*overrides, *METHODS[task.method]])


@lru_cache(maxsize=1)
def _load(study: str, data_root: Path) -> DataSplits:
    """Read once by each process; nothing writes to the tensors."""
    return load_packaged_config(f"studies/{study}", []).data.load(data_root)


def hold_out(data: DataSplits, *, seed: int) -> DataSplits:
    """A random part of the training samples in the place of the test samples, which nothing here looks at."""
    order = torch.randperm(len(data.train_labels), generator=torch.Generator().manual_seed(seed))
    size = round(len(order) * VALIDATION_SHARE)
    held, rest = order[:size], order[size:]
    return replace(
        data,
        train_inputs=data.train_inputs[rest],
        train_labels=data.train_labels[rest],
        test_inputs=data.train_inputs[held],
        test_labels=data.train_labels[held],
    )


@torch.no_grad()
def _logits(model: torch.nn.Module, inputs: Tensor) -> Tensor:
    model.eval()
    return forward_pass(model, inputs)


def _measure(
    logits: Tensor, labels: Tensor, concern: Tensor, released: Tensor, factor: float, k: int, config: RunConfig
) -> Measure:
    costs = torch.where(released, factor, 1.0)
    decided = least_concern_decision(logits.softmax(dim=1), concern=costs)
    confusion = confusion_matrix(decided, labels, num_classes=len(concern))
    score = meta_pattern_concern_score(logits, labels, num_classes=len(concern), k=k, t=config.score.t, concern=concern)
    return Measure(
        (decided == labels).double().mean().item(),
        int(count_dangerous_cells(confusion, released)),
        score.item(),
    )


def _outcome(task: StudyTask, measures: dict[str, list[dict[str, float]]]) -> Outcome:
    plain = {name: (Measure(**parts[0]), Measure(**parts[1])) for name, parts in measures.items()}  # type: ignore[arg-type]
    return Outcome(task.method, task.learning_rate, task.seed, plain)
