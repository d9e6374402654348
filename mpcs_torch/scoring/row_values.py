"""The value of each row whose mean is a metric, or determines it."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import meta_pattern_concern_score
from mpcs_torch.functional.concern.expected_concern import decide
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry


class Mean(NamedTuple):
    """A metric that is a function of a mean over rows."""

    name: str
    of_rows: Callable[[Tensor, Tensor], Tensor]
    """From probabilities (n, C) and labels (n,): (n,), float64, all at least 0."""
    of_mean: Callable[[float], float] = lambda mean: mean
    """Monotonic."""
    is_slow: bool = False
    """Whether a sample of the rows of a large file must do."""


def means_of(entry: "MetricEntry", chosen: ChosenMetrics) -> list[Mean]:
    """Return the mean that a metric is made of; none if it is no such metric."""
    from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore
    from mpcs_torch.metrics.probability.brier_score import BrierScore
    from mpcs_torch.metrics.probability.cross_entropy import CrossEntropy
    from mpcs_torch.metrics.probability.generalized import GeometricAccuracy

    if entry.metric is CrossEntropy:
        return [Mean(entry.name, lambda probs, labels: -_of_labels(probs, labels).log())]
    if entry.metric is BrierScore:
        divisor = chosen.num_classes if entry.settings.get("over_classes") == "mean" else 1
        return [
            Mean(
                entry.name,
                lambda probs, labels: (
                    (probs.square().sum(1) - 2 * _of_labels(probs, labels) + 1).clamp(min=0) / divisor
                ),
            )
        ]
    if issubclass(entry.metric, GeometricAccuracy):
        made: Any = entry.make(chosen.num_classes, concern=chosen.concern, **chosen.settings)
        power, floor = float(made.power), float(made.epsilon)
        if power == 0:
            return [
                Mean(
                    entry.name,
                    lambda probs, labels: -_of_labels(probs, labels).clamp(min=floor).log(),
                    lambda mean: float(torch.tensor(-mean).double().exp()),
                )
            ]
        return [
            Mean(
                entry.name,
                lambda probs, labels: _of_labels(probs, labels).clamp(min=floor) ** power,
                lambda mean: min(1.0, mean ** (1 / power) if mean > 0 else inf),
            )
        ]
    if entry.metric is MetaPatternConcernScore:
        mpcs: Any = entry.make(chosen.num_classes, concern=chosen.concern, **chosen.settings)
        return [
            Mean(
                entry.name,
                lambda probs, labels: meta_pattern_concern_score(
                    probs,
                    labels,
                    num_classes=chosen.num_classes,
                    k=mpcs.k,
                    t=mpcs.t,
                    concern=mpcs.concern,
                    from_logits=False,
                    correct_concern=mpcs.correct_concern,
                    reduction="none",
                ),
                is_slow=True,
            )
        ]
    return []


def decided_by_cost(scores: Tensor, target: Tensor, costs: Tensor) -> Tensor:
    """Return the decision with the minimum expected cost for each row, -1 for a referral: (n,)."""
    settings: dict[str, Any] = {"ratio": None, "ignore_index": None, "sample_weight": None}
    return decide(scores, target, concern=costs, decision="least_concern", from_logits=False, **settings).predicted


def _of_labels(probs: Tensor, labels: Tensor) -> Tensor:
    return probs.gather(1, labels.unsqueeze(1)).squeeze(1)
