"""RankMetric, the torchmetrics form of a measure of ranks."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.functional.quality.roc_area import RankedRows, RocArea
from mpcs_torch.metrics.measure_metric import DefinedMetric


class RankMetric(DefinedMetric):
    """A Metric that keeps the scores of all samples, and whose value depends on their order."""

    measure: RocArea
    scores: list[Tensor]
    labels_of_scores: list[Tensor]
    weights: list[Tensor]

    def __init__(self, measure: RocArea, validate_args: bool, kwargs: Mapping[str, Any]) -> None:
        """Initialize from a measure and the arguments of `torchmetrics.Metric`, ``kwargs``."""
        settings = {"num_classes": measure.num_classes, "classes": tuple(measure.classes)}
        super().__init__(measure, validate_args, kwargs, settings)
        self.add_samples("scores", shape=(1 if measure.classes else measure.num_classes,))
        self.add_samples("labels_of_scores", dtype=torch.int64)
        self.add_samples("weights")

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: probabilities (N, C), labels and weights (N,)."""
        samples = flatten_samples(preds.detach(), target, self.measure.num_classes, "probs", None, sample_weight)
        self.admit(samples.find_faults)
        rows = self.measure.rows(samples.scores, samples.labels.target, samples.labels.sample_weight)
        self.add(scores=rows.scores, labels_of_scores=rows.labels, weights=rows.weights)

    def compute(self) -> Tensor:
        """Return the value of all samples: a float64 scalar."""
        self.check_computable()
        names = "scores", "labels_of_scores", "weights"
        return self.measure.value(RankedRows(*map(self.kept_samples, names)))
