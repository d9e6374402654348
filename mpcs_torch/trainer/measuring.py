"""Measure logits by the metrics that a config names."""

from collections.abc import Collection
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import log_softmax
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.metrics.metric_entry import MetricEntry, Takes
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.data import DataSplits


def value_of(made: Any, preds: Tensor, target: Tensor) -> Any:
    """Return the value of a measure or a Metric, ``made``, for samples that are not validated: a model may diverge."""
    if isinstance(made, Measure):
        made = made.on_device_of(preds)
        return made.value_of_rows(made.rows(preds, target))
    if isinstance(made, RocArea):
        return made.value(made.rows(preds, target))
    made.to(preds.device).reset()
    return made(preds, target)


def inputs_from_logits(logits: Tensor, takes: Collection[Takes]) -> dict[Takes, Tensor]:
    """Compute the inputs of metrics that ``takes`` lists, such as "probabilities", from ``logits`` (N, C)."""
    inputs: dict[Takes, Tensor] = {"decisions": highest_class(logits)[1], "trials": logits}
    if "probabilities" in takes or "log_probabilities" in takes:
        inputs["log_probabilities"] = log_softmax(logits)
    if "probabilities" in takes:
        inputs["probabilities"] = inputs["log_probabilities"].exp()
    return inputs


def make_metrics(config: RunConfig, data: DataSplits) -> list[tuple[MetricEntry, Any]]:
    """Return for each metric of ``config`` its entry in the register, and its measure or Metric for ``data``."""
    score = config.score
    concern = score.concern.spec(data.class_names)
    settings = {"concern": concern, "k": score.k, "t": score.t, "validate_args": False}
    try:
        return [
            (entry, entry.make(len(data.class_names), **settings))
            for entry in config.entries
        ]
    except (TypeError, ValueError) as error:
        raise ConfigError(
            "caused_by", f"{config.name}: metrics:", cause=str(error)
        ) from error
