"""Parts for Ignite: torchmetrics metrics on an evaluator, and the checkpoint selector as its handler.

`MPCSLR` needs no part of its own::

    TorchMetric(MetaPatternConcernScore(3)).attach(evaluator, "mpcs")
    selector = CheckpointSelector("checkpoints", SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore}))
    evaluator.add_event_handler(Events.COMPLETED, SelectCheckpoint(selector, model.state_dict, trainer))
    evaluator.add_event_handler(Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"]))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(validation_loader))
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import ignite.distributed as idist
import torch
from ignite.base.mixins import Serializable
from ignite.engine import Engine
from ignite.metrics import Metric as IgniteMetric
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from mpcs_torch.errors import MpcsError
from mpcs_torch.learning import CheckpointSelector

__all__ = ["IgniteError", "SelectCheckpoint", "TorchMetric"]


class IgniteError(MpcsError, ValueError):
    """An evaluator lacks a metric that a selector needs, or a state is that of another metric."""


class TorchMetric(IgniteMetric):
    """A torchmetrics metric for an Ignite engine, whose output holds predictions and labels.

    The value stands in ``engine.state.metrics`` under the attached name; a `MetricCollection` gives one value under
    each of its own names too. States of several processes are gathered by torchmetrics, so every process must compute.
    ``state_dict`` and ``load_state_dict`` are those of Ignite's metrics, with the states of the metric or of each one
    in the collection.

    Args:
        metric: The metric, or a collection of metrics.
        output_transform: Turns the output of the engine into ``(preds, target)``, or a dictionary of ``y_pred`` and
            ``y``. Default: it is so already.
        device: Where the metric accumulates; the predictions must be there.

    Raises:
        ValueError: From ``load_state_dict``, if the state comes from another class of metric, or has other shapes or
            another number of processes. Settings of torchmetrics' own metrics are not part of their states.

    Example:
        >>> import torch
        >>> from ignite.engine import Engine
        >>> from mpcs_torch.integrations.ignite import TorchMetric
        >>> from mpcs_torch.metrics import Accuracy
        >>> evaluator = Engine(lambda engine, batch: batch)
        >>> TorchMetric(Accuracy(2)).attach(evaluator, "accuracy")
        >>> evaluator.run([(torch.tensor([0, 1]), torch.tensor([0, 0]))]).metrics["accuracy"]
        0.5
    """

    _state_dict_all_req_keys = ("states", "update_counts", "kinds")

    def __init__(
        self,
        metric: Metric | MetricCollection,
        output_transform: Callable[[Any], Any] = lambda output: output,
        device: str | torch.device = "cpu",
    ) -> None:
        self.metric = metric.to(device)
        super().__init__(output_transform, device, skip_unrolling=True)  # lists of numbers are not ours to unroll

    def reset(self) -> None:
        """Forget all batches."""
        self.metric.reset()

    def update(self, output: Sequence[Tensor]) -> None:
        """Add a batch."""
        self.metric.update(*output)

    def compute(self) -> Any:
        """Return the value of the metric, or the values of a collection by name."""
        return self.metric.compute()

    def _by_path(self) -> dict[str, Metric]:
        if isinstance(self.metric, MetricCollection):
            self.metric.items()  # metrics that share their states get them
        return {path: part for path, part in self.metric.named_modules() if isinstance(part, Metric)}

    def _kinds(self) -> dict[str, str]:
        return {path: type(part).__name__ for path, part in self._by_path().items()}

    def _state_dict_per_rank(self) -> OrderedDict[str, Any]:
        states = self.metric.state_dict()
        for path, part in self._by_path().items():
            states |= {f"{path}.{name}".lstrip("."): state for name, state in part.metric_state.items()}
        counts = {path: part.update_count for path, part in self._by_path().items()}
        return OrderedDict(states=deepcopy(dict(states)), update_counts=counts, kinds=self._kinds())

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Any]) -> None:
        Serializable.load_state_dict(self, state_dict)
        expected = self._state_dict_per_rank()["states"]
        shapes, given = (_shapes(states) for states in (expected, state_dict["states"]))
        if shapes != given or state_dict["kinds"] != self._kinds():
            problem = f"those of {state_dict['kinds']}, {given}" if shapes != given else state_dict["kinds"]
            raise IgniteError(f"state_dict must hold the states of {self._kinds()}, {shapes}, but holds {problem}.")
        self.metric.load_state_dict(deepcopy(state_dict["states"]))
        for path, part in self._by_path().items():  # neither is a state
            part._update_count, part._computed = state_dict["update_counts"][path], None
        self.metric.to(self._device)


def _shapes(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shape of each state that is a tensor; lists of samples grow."""
    return {name: tuple(state.shape) if isinstance(state, Tensor) else None for name, state in states.items()}


class SelectCheckpoint:
    """Offer each evaluation to a `CheckpointSelector`: a handler for ``Events.COMPLETED`` of the evaluator.

    Of several processes, the first writes while the others wait.

    Args:
        selector: The selector; its rule names metrics as they are attached to the evaluator.
        state: Called for what to save, such as ``model.state_dict``.
        trainer: The engine whose epochs number the checkpoints.

    Raises:
        IgniteError: From the evaluator's run, if a metric of the rule is not attached to it.

    Example:
        >>> import tempfile
        >>> import torch
        >>> from ignite.engine import Engine, Events
        >>> from mpcs_torch.integrations.ignite import SelectCheckpoint
        >>> from mpcs_torch.learning import CheckpointSelector, SelectionRule
        >>> selector = CheckpointSelector(tempfile.mkdtemp(), SelectionRule("mpcs", {"mpcs": "min"}))
        >>> model, trainer, evaluator = torch.nn.Linear(2, 2), Engine(lambda *_: None), Engine(lambda *_: None)
        >>> handler = SelectCheckpoint(selector, model.state_dict, trainer)
        >>> _ = evaluator.add_event_handler(Events.COMPLETED, handler)
    """

    def __init__(self, selector: CheckpointSelector, state: Callable[[], object], trainer: Engine) -> None:
        self.selector, self.state, self.trainer = selector, state, trainer

    def __call__(self, evaluator: Engine) -> None:
        """Offer the epoch of the trainer with the metrics of the evaluator."""
        measured = evaluator.state.metrics
        missing = [name for name in self.selector.rule.metrics if name not in measured]
        if missing:
            raise IgniteError(
                f"the selector needs {', '.join(missing)}: attach it to the evaluator, which has {', '.join(measured)}."
            )
        if idist.get_rank() == 0:
            values = {name: measured[name] for name in self.selector.rule.metrics}
            self.selector.update(self.state, epoch=self.trainer.state.epoch, **values)
        idist.barrier()
