"""Adapters for Ignite: torchmetrics metrics for an evaluator, and a handler that selects checkpoints.

`MPCSLR` needs no adapter::

    TorchMetric(MetaPatternConcernScore(3)).attach(evaluator, "mpcs")
    rule = SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore})
    best = SelectCheckpoint("checkpoints", rule, state=model.state_dict, trainer=trainer, patience=5)
    evaluator.add_event_handler(Events.COMPLETED, best)
    evaluator.add_event_handler(Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"]))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(validation_loader))
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from ignite.base.mixins import Serializable
from ignite.engine import Engine, Events
from ignite.metrics import Metric as IgniteMetric
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from mpcs_torch.errors import ArgumentsError, InvalidValueError
from mpcs_torch.integrations.checkpoints import CheckpointCallback
from mpcs_torch.learning import CheckpointSelector, SelectionRule

__all__ = ["SelectCheckpoint", "TorchMetric"]


class TorchMetric(IgniteMetric):
    """A torchmetrics metric for an Ignite engine that outputs predictions and labels.

    After ``attach(engine, name)``, the value is ``engine.state.metrics[name]``; a `MetricCollection` also adds the
    value of each of its metrics, by name. In a distributed run, call ``compute`` in every process, because torchmetrics
    gathers the states. As in Ignite, ``state_dict`` and ``load_state_dict`` save and load the states.

    Args:
        metric: The metric, or a collection of metrics.
        output_transform: A function that converts the output of the engine to ``(preds, target)``, or a dictionary of
            ``y_pred`` and ``y``. Default: no conversion.
        device: The device of the states and of the predictions.

    Raises:
        ValueError: From ``load_state_dict``, if the saved metric has another class, other shapes of states or another
            number of processes. Settings of torchmetrics' own metrics are not compared: their states do not have them.

    Example:
        >>> import torch
        >>> from ignite.engine import Engine, Events
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
        # ``skip_unrolling`` keeps lists of numbers whole.
        super().__init__(output_transform, device, skip_unrolling=True)

    def reset(self) -> None:
        """Reset the states."""
        self.metric.reset()

    def update(self, output: Sequence[Tensor]) -> None:
        """Update the states with a batch."""
        self.metric.update(*output)

    def compute(self) -> Any:
        """Compute the value of the metric, or the values of a collection by name."""
        return self.metric.compute()

    def _parts(self) -> dict[str, Metric]:
        """Return the metrics by path: the metric, those in a collection, and those that wrappers hold."""
        if isinstance(self.metric, MetricCollection):
            self.metric.items()  # copies the states that metrics share
        return {
            path: part
            for path, part in self.metric.named_modules()
            if isinstance(part, Metric)
        }

    def _kinds(self) -> dict[str, dict[str, Any]]:
        """Return the class and the shapes of the states of each metric by path; lists of states have no shape."""
        kinds = dict[str, dict[str, Any]]()
        for path, part in self._parts().items():
            kind: dict[str, Any] = {"class": type(part).__name__}
            for name, state in part.metric_state.items():
                if isinstance(state, Tensor):
                    kind[name] = list(state.shape)
            kinds[path] = kind
        return kinds

    def _state_dict_per_rank(self) -> OrderedDict[str, Any]:
        # The states of torchmetrics are not persistent by default, so that a state dict lacks them.
        states = self.metric.state_dict()
        counts = dict[str, int]()
        for path, part in self._parts().items():
            counts[path] = part.update_count
            for name, state in part.metric_state.items():
                key = f"{path}.{name}" if path else name  # a single metric has no path
                states[key] = state
        return OrderedDict(
            states=deepcopy(dict(states)), update_counts=counts, kinds=self._kinds()
        )

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Any]) -> None:
        Serializable.load_state_dict(self, state_dict)
        if state_dict["kinds"] != self._kinds():
            raise InvalidValueError(
                "of_metrics", "state_dict", state_dict["kinds"], metrics=self._kinds()
            )
        self.metric.load_state_dict(deepcopy(state_dict["states"]))
        for path, part in self._parts().items():  # not part of the states
            part._update_count = state_dict["update_counts"][path]
            part._computed = None
        self.metric.to(self._device)


class SelectCheckpoint(CheckpointCallback):
    """A handler for an evaluator's ``Events.COMPLETED`` that updates a `CheckpointSelector` after each evaluation.

    Evaluations before and after the training are not recorded: they may be of other data, such as the test data. With
    ``patience``, the trainer stops as with Ignite's `EarlyStopping`. In a distributed run, rank 0 writes while the
    other ranks wait.

    Args:
        selector_or_folder: A `CheckpointSelector`, or the folder of a new one.
        rule: The rule of a new selector. Its metrics must be attached to the evaluator.
        state: A function that returns the state to save, for example ``model.state_dict``.
        trainer: The training engine, whose epoch is the number of the checkpoint.
        **options: The other arguments of a new `CheckpointSelector`.

    Attributes:
        selector: The `CheckpointSelector`.

    Raises:
        ArgumentsError: If the arguments do not fit together; a TypeError.
        ValueError, FileExistsError: In the same cases as `CheckpointSelector`.
        MissingMetricError: From the evaluator's run, if a metric of the rule is not attached; a ValueError.
        TrainedTwiceError: From the trainer's run, if this handler has recorded another training; a RuntimeError.

    Example:
        >>> import tempfile
        >>> import torch
        >>> from ignite.engine import Engine, Events
        >>> from mpcs_torch.integrations.ignite import SelectCheckpoint
        >>> from mpcs_torch.learning import SelectionRule
        >>> rule = SelectionRule("mpcs", {"mpcs": "min"})
        >>> model, trainer, evaluator = torch.nn.Linear(2, 2), Engine(lambda *_: None), Engine(lambda *_: None)
        >>> handler = SelectCheckpoint(tempfile.mkdtemp(), rule, state=model.state_dict, trainer=trainer)
        >>> _ = evaluator.add_event_handler(Events.COMPLETED, handler)
    """

    remedy = ": attach it to the evaluator"

    def __init__(
        self,
        selector_or_folder: CheckpointSelector | str | Path,
        rule: SelectionRule | None = None,
        *,
        state: Callable[[], object] | None = None,
        trainer: Engine | None = None,
        **options: Any,
    ) -> None:
        if not callable(state) or not isinstance(trainer, Engine):
            raise ArgumentsError("state_and_trainer", "state", [state, trainer])
        super().__init__(selector_or_folder, rule, **options)
        self.state, self.trainer = state, trainer
        self._is_training = False
        trainer.add_event_handler(Events.STARTED, self._begin)
        trainer.add_event_handler(Events.COMPLETED, self._end)

    def __call__(self, evaluator: Engine) -> None:
        """Update the selector with the epoch of the trainer and the metrics of the evaluator."""
        if not self._is_training:
            return
        should_stop = self.record(
            self.state, epoch=self.trainer.state.epoch, values=evaluator.state.metrics
        )
        if should_stop:
            self.trainer.terminate()

    def _begin(self) -> None:
        self.begin_training(is_new=self.trainer.state.epoch == 0)
        self._is_training = True

    def _end(self) -> None:
        self._is_training = False
        self.end_training()
