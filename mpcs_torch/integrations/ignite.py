"""Parts for Ignite: torchmetrics metrics on an evaluator, and the checkpoint selector as its handler.

`MPCSLR` needs no part of its own::

    TorchMetric(MetaPatternConcernScore(3)).attach(evaluator, "mpcs")
    selector = CheckpointSelector("checkpoints", SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore}))
    evaluator.add_event_handler(Events.COMPLETED, SelectCheckpoint(selector, model.state_dict, trainer))
    evaluator.add_event_handler(Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"]))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(validation_loader))
"""

from collections.abc import Callable, Sequence
from typing import Any

import ignite.distributed as idist
import torch
from ignite.engine import Engine
from ignite.metrics import Metric as IgniteMetric
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from mpcs_torch.errors import MpcsError
from mpcs_torch.learning import CheckpointSelector

__all__ = ["IgniteError", "SelectCheckpoint", "TorchMetric"]


class IgniteError(MpcsError, ValueError):
    """An evaluator lacks a metric that a selector needs."""


class TorchMetric(IgniteMetric):
    """A torchmetrics metric for an Ignite engine, whose output holds predictions and labels.

    The value stands in ``engine.state.metrics`` under the attached name; a `MetricCollection` gives one value under
    each of its own names too. States of several processes are gathered by torchmetrics, so every process must compute.

    Args:
        metric: The metric, or a collection of metrics.
        output_transform: Turns the output of the engine into ``(preds, target)``, or a dictionary of ``y_pred`` and
            ``y``. Default: it is so already.
        device: Where the metric accumulates; the predictions must be there.

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
