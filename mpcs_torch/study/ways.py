"""Ways of deciding by a trained model, and what each of them measures."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import accuracy, dangerous_errors, least_concern_decision, meta_pattern_concern_score
from mpcs_torch.trainer.checkpoints import open_selector
from mpcs_torch.trainer.config.sections import ScoreConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import forward_pass
from mpcs_torch.trainer.loop import PreparedRun

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


WAYS = tuple(
    Way(checkpoint, calibrated, factor)
    for checkpoint in CHECKPOINTS
    for calibrated in (False, True)
    for factor in DECISION_FACTORS
)


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
    assert selector.last_epoch is not None
    assert data.validation is not None
    concern = run.config.score.concern.spec(data.class_names)
    epochs: dict[Checkpoint, int] = {"selected": selector.best.number, "last": selector.last_epoch}
    measures: dict[Way, tuple[Measure, Measure]] = {}
    for checkpoint, epoch in epochs.items():
        run.state.measured.load_state_dict(selector.load(epoch)["model"])
        splits = [(_logits(run, split.inputs), split.labels) for split in (data.validation, data.test)]
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


@torch.no_grad()
def _logits(run: PreparedRun, inputs: Tensor) -> Tensor:
    run.state.measured.eval()
    return forward_pass(run.state.measured, inputs, run.state.precision)


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
