"""RankMetric, the torchmetrics form of a measure of ranks."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules
from mpcs_torch.functional.quality.roc_area import RankedRows, RocArea
from mpcs_torch.metrics.base import SumMetric


class RankMetric(SumMetric):
    """A Metric that keeps the scores of all samples, and whose value depends on their order.

    Args:
        measure: The measure, such as `RocArea`.
        validate_args: Whether to check the values of each batch.
        **kwargs: Arguments of `torchmetrics.Metric`.
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    scores: list[Tensor]
    labels_of_scores: list[Tensor]
    weights: list[Tensor]

    def __init__(self, measure: RocArea, *, validate_args: bool = True, **kwargs: Any) -> None:
        rules = sample_rules(measure.num_classes, scale="probs")
        settings = {"num_classes": measure.num_classes, "classes": tuple(measure.classes)}
        super().__init__(locals(), value_rules=rules, state_settings=settings)
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
        value: Tensor = self.measure.value(RankedRows(*map(self.kept_samples, names)))
        return value
