"""Parts for the Trainer of Hugging Face: metrics that it ranks the right way, a loss, and the checkpoint selector.

The Trainer takes a metric for better when higher unless its name ends in "loss", and steps `MPCSLR` with the metric
that ``metric_for_best_model`` names::

    arguments = TrainingArguments(..., eval_strategy="epoch", metric_for_best_model="mpcs_loss")
    trainer = Trainer(
        model,
        arguments,
        compute_metrics=compute_metrics({"mpcs": MetaPatternConcernScore(3)}),  # reported as eval_mpcs_loss
        compute_loss_func=loss_function(SoftmaxMarginLoss(concern)),
        callbacks=[SelectCheckpoint(CheckpointSelector("best", SelectionRule("mpcs_loss", {"mpcs_loss": "min"})))],
        optimizers=(optimizer, MPCSLR(optimizer)),
    )
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from transformers import EvalPrediction, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mpcs_torch.errors import MpcsError
from mpcs_torch.learning import CheckpointSelector

__all__ = ["HuggingFaceError", "SelectCheckpoint", "compute_metrics", "loss_function"]

IGNORED = -100
"""The label that the Trainer and its collators leave out."""


class HuggingFaceError(MpcsError, ValueError):
    """Metrics, a loss or a selector do not fit the Trainer."""


def compute_metrics(metrics: Mapping[str, Metric] | MetricCollection) -> Callable[..., dict[str, float]]:
    """Make the ``compute_metrics`` of a Trainer from torchmetrics metrics over logits and labels.

    A metric that is better when lower is reported under its name followed by ``_loss``, so that the Trainer's
    ``metric_for_best_model`` and ``load_best_model_at_end`` pick the right epoch without ``greater_is_better``. With
    ``batch_eval_metrics=True`` in the `TrainingArguments`, the logits of all batches are never held together.

    Args:
        metrics: The metrics by name, made for logits; each computes a scalar. If the model returns several outputs,
            the first one holds the logits.

    Raises:
        HuggingFaceError: If the name of a metric that is better when higher ends in "loss"; in evaluation, if a value
            is not a scalar.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> from mpcs_torch import MetaPatternConcernScore
        >>> from mpcs_torch.metrics import Accuracy
        >>> compute = compute_metrics({"mpcs": MetaPatternConcernScore(2), "accuracy": Accuracy(2)})
        >>> sorted(compute(EvalPrediction(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 1]))))
        ['accuracy', 'mpcs_loss']
    """
    named = {_ranked_name(name, metric): metric for name, metric in metrics.items()}

    def compute(prediction: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        outputs = prediction.predictions
        logits = torch.as_tensor(outputs[0] if isinstance(outputs, tuple | list) else outputs)
        target = torch.as_tensor(prediction.label_ids)
        for metric in named.values():
            metric.to(logits.device).update(logits, target)
        if not compute_result:
            return {}
        values = {name: _scalar(name, metric.compute()) for name, metric in named.items()}
        for metric in named.values():
            metric.reset()
        return values

    return compute


def loss_function(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Make the ``compute_loss_func`` of a Trainer from a loss over logits and labels.

    Gradient accumulation is accounted for: each batch counts by its number of labels other than -100.

    Args:
        loss: Called with logits ``(N, C)`` or ``(N, ..., C)`` and labels ``(N,)`` or ``(N, ...)``, which are flattened
            to ``(M, C)`` and ``(M,)``. It returns the mean over samples, as `SoftmaxMarginLoss` does, and leaves out
            labels of -100.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import ConcernLoss
        >>> compute = loss_function(ConcernLoss())
        >>> compute({"logits": torch.tensor([[2.0, 0.0]])}, torch.tensor([0]), num_items_in_batch=torch.tensor(2))
        tensor(0.0635)
    """

    def compute(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
        mean = loss(logits.flatten(0, -2), labels.to(logits.device).flatten())
        if num_items_in_batch is None:
            return mean
        return mean * ((labels != IGNORED).sum().to(mean.device) / num_items_in_batch)

    return compute


class SelectCheckpoint(TrainerCallback):
    """Offer the model's state dict to a `CheckpointSelector` after each evaluation of the training.

    Load the best with ``model.load_state_dict(selector.load_best())``. Epochs are counted from 1 with
    ``eval_strategy="epoch"``; otherwise the number is that of the optimizer step. Of several processes, the first
    writes while the others wait. The Trainer's own checkpoints serve to resume.

    Args:
        selector: The selector; its rule names metrics as ``compute_metrics`` returns them, or with ``eval_`` before.

    Raises:
        HuggingFaceError: From ``Trainer.train``, if an evaluation lacks a metric of the rule, as each of several
            evaluation sets does.

    Example:
        >>> import tempfile
        >>> from mpcs_torch.learning import CheckpointSelector, SelectionRule
        >>> selector = CheckpointSelector(tempfile.mkdtemp(), SelectionRule("mpcs_loss", {"mpcs_loss": "min"}))
        >>> callback = SelectCheckpoint(selector)
    """

    def __init__(self, selector: CheckpointSelector) -> None:
        self.selector = selector
        self._trains = False

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # a hook
        """Heed evaluations from now on."""
        self._trains = True

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Heed no later evaluations, which may be those of a test set."""
        self._trains = False

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **kwargs: Any,
    ) -> None:
        """Offer the epoch, or the step if evaluations do not follow epochs."""
        if not self._trains or state.global_step == 0:  # eval_on_start
            return
        metrics: Mapping[str, float] = kwargs["metrics"]
        logged = {**metrics, **{name.removeprefix("eval_"): value for name, value in metrics.items()}}
        missing = [name for name in self.selector.rule.metrics if name not in logged]
        if missing:
            raise HuggingFaceError(
                f"the selector needs {', '.join(missing)}, but the evaluation gave {', '.join(metrics)}."
            )
        if state.is_world_process_zero:
            values = {name: logged[name] for name in self.selector.rule.metrics}
            number = round(state.epoch or 0) if args.eval_strategy == "epoch" else state.global_step
            self.selector.update(kwargs["model"].state_dict, epoch=number, **values)
        PartialState().wait_for_everyone()


def _ranked_name(name: str, metric: Metric) -> str:
    """Return a name from whose end the Trainer tells which way is better."""
    if metric.higher_is_better is False:
        return name if name.endswith("loss") else f"{name}_loss"
    if name.endswith("loss"):
        raise HuggingFaceError(
            f"{name!r} must not end in 'loss': the Trainer would take it for better when lower, "
            f"but {type(metric).__name__} has higher_is_better={metric.higher_is_better}."
        )
    return name


def _scalar(name: str, value: Any) -> float:
    if not isinstance(value, Tensor) or value.numel() != 1:
        kind = f"has shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"is a {type(value).__name__}"
        raise HuggingFaceError(f"metric {name!r} must compute a scalar to be logged, but its value {kind}.")
    return float(value)
