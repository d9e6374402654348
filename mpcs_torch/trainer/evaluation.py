"""Evaluate a model on a split, with one forward pass for all metrics."""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import log_softmax
from mpcs_torch.functional.quality.scores import confusion_matrix
from mpcs_torch.metrics.metric_set import MetricSet
from mpcs_torch.metrics.register import Takes
from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.trainer.config.parts import PartError
from mpcs_torch.trainer.config.sections import Precision
from mpcs_torch.trainer.data import Split


@dataclass(frozen=True)
class EvaluatedSplit:
    """The measurements of a model on a split."""

    values: dict[str, float]
    """The value of each metric."""
    confusion: Tensor
    """The confusion matrix, int64 (C, C): rows are true classes, columns predicted classes."""
    logits: Tensor
    """The logits of the samples of this process, (N, C)."""


@dataclass(frozen=True)
class Evaluator:
    """A function object that evaluates models on a split; each process evaluates its share of the samples."""

    split: Split
    metrics: MetricSet
    mode: Literal["eval", "train"]
    precision: Precision
    classes: int
    batch_size: int
    """The maximum number of samples in one forward pass."""
    world: World = ALONE

    @property
    def share(self) -> Split:
        """The part of the split that this process evaluates."""
        rows = self.world.rows(len(self.split.labels))
        return self.split if self.world.size == 1 else Split(self.split.inputs[rows], self.split.labels[rows])

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> EvaluatedSplit:
        """Evaluate ``model`` in the mode ``self.mode`` (train or eval), then restore its earlier mode."""
        mode_before = model.training
        model.train(self.mode == "train")
        logits = self.logits(model)
        model.train(mode_before)
        inputs = inputs_of(logits, self.metrics.takes)
        self.metrics.reset()
        labels = self.share.labels
        self.metrics.update(inputs, labels)
        confusion = confusion_matrix(inputs["decisions"], labels, num_classes=logits.shape[1]).long()
        self.world.add_up([confusion])
        return EvaluatedSplit(self.metrics.values(), confusion.cpu(), logits)

    @torch.no_grad()
    def logits(self, model: nn.Module) -> Tensor:
        """Compute the logits of the samples of this process, (N, C)."""
        parts = torch.split(self.share.inputs, self.batch_size)
        batches = [forward_pass(model, inputs, self.precision, self.classes) for inputs in parts]
        return batches[0] if len(batches) == 1 else torch.cat(batches)


def inputs_of(logits: Tensor, takes: Collection[Takes]) -> dict[Takes, Tensor]:
    """Compute the inputs of metrics from logits (N, C), with at most one softmax."""
    inputs: dict[Takes, Tensor] = {"decisions": highest_class(logits)[1], "trials": logits}
    if "probabilities" in takes or "log_probabilities" in takes:
        inputs["log_probabilities"] = log_softmax(logits)
    if "probabilities" in takes:
        inputs["probabilities"] = inputs["log_probabilities"].exp()
    return inputs


def forward_pass(model: nn.Module, inputs: Tensor, precision: Precision, classes: int) -> Tensor:
    """Compute logits (N, C), in float32 if the precision is mixed; raise a `PartError` if their shape is wrong."""
    is_mixed = precision == "bf16-mixed"
    with torch.autocast(inputs.device.type, torch.bfloat16) if is_mixed else nullcontext():
        logits = model(inputs)
    shape = (len(inputs), classes)
    if not isinstance(logits, Tensor) or logits.shape != shape or not logits.is_floating_point():
        seen = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise PartError(f"model.path: forward must return logits, floating point {shape}, but returns {seen}")
    return logits.float() if is_mixed else logits
