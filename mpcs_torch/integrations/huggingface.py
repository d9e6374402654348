"""Adapters for the Hugging Face Trainer: metrics whose names show their direction, a loss, and checkpoint selection.

The Trainer assumes that higher is better, unless the name of a metric ends in "loss". It steps `MPCSLR` with the metric
named by ``metric_for_best_model``::

    arguments = TrainingArguments(..., eval_strategy="epoch", metric_for_best_model="mpcs_loss")
    trainer = Trainer(
        model,
        arguments,
        compute_metrics=compute_metrics({"mpcs": MetaPatternConcernScore(3)}),  # reported as eval_mpcs_loss
        compute_loss_func=loss_function(SoftmaxMarginLoss(concern)),
        callbacks=[SelectCheckpoint("best", SelectionRule("mpcs_loss", {"mpcs_loss": "min"}), patience=5)],
        optimizers=(optimizer, MPCSLR(optimizer)),
    )
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from transformers import (
    EvalPrediction,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.integrations.checkpoints import CheckpointCallback
from mpcs_torch.learning import MPCSLR, CheckpointSelector
from mpcs_torch.metrics.find_entry import entry_of_metric

__all__ = ["SelectCheckpoint", "compute_metrics", "loss_function"]

EVALUATED = "eval_"
"""The prefix that the Trainer gives to the names of metrics of an evaluation."""
IGNORED = -100
"""The label that the Trainer ignores, and that its collators use for padding."""


def compute_metrics(
    metrics: Mapping[str, Metric] | MetricCollection,
) -> Callable[..., dict[str, float]]:
    """Return the ``compute_metrics`` argument of a Trainer, from torchmetrics metrics of logits and labels.

    If lower is better for a metric, its name gets the suffix ``_loss``. The Trainer's ``metric_for_best_model`` and
    ``load_best_model_at_end`` then pick the right epoch without ``greater_is_better``. With ``batch_eval_metrics=True``
    or ``eval_do_concat_batches=False`` in the `TrainingArguments`, logits are not concatenated over batches.

    Logits ``(N, C)`` or ``(N, ..., C)``, such as ``(N, L, C)`` for tokens, are flattened to ``(M, C)``, and labels
    ``(N,)`` or ``(N, ...)`` to ``(M,)``. Samples with the padding label -100 are ignored.

    Args:
        metrics: The metrics by name. Each must take logits and compute a scalar; the function updates copies of them.
            If the model returns several outputs, the first output must be the logits.

    Raises:
        ValueError: If a name ends in "loss", but lower is not better. In evaluation, if the shapes of logits and
            labels do not match, or a value is not a scalar.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> from mpcs_torch import MetaPatternConcernScore
        >>> from mpcs_torch.metrics import Accuracy
        >>> compute = compute_metrics({"mpcs": MetaPatternConcernScore(2), "accuracy": Accuracy(2)})
        >>> sorted(compute(EvalPrediction(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 1]))))
        ['accuracy', 'mpcs_loss']
    """
    named = {_ranked_name(name, metric): metric.clone() for name, metric in metrics.items()}
    entries = {name: entry_of_metric(metric, name) for name, metric in named.items()}
    for metric in named.values():
        metric.distributed_available_fn = _is_never_distributed
        metric.reset()

    def compute(
        prediction: EvalPrediction, compute_result: bool = True
    ) -> dict[str, float]:
        # An error ends the evaluation, too; otherwise ``compute_result`` says whether it is over.
        is_over = True
        try:
            # One update, so that values do not depend on whether the Trainer has concatenated the batches.
            batches = [
                _counted_rows(outputs, labels) for outputs, labels in _batches(prediction)
            ]
            logits = torch.cat([of_batch for of_batch, _ in batches])
            target = torch.cat([of_batch for _, of_batch in batches])
            if len(target):
                for metric in named.values():
                    metric.to(logits.device).update(logits, target)
            is_over = compute_result
            values = dict[str, float]()
            if is_over:
                for name, metric in named.items():
                    values[name] = entries[name].number(metric.compute())
            return values
        finally:
            if is_over:
                for metric in named.values():
                    metric.reset()

    return compute


def loss_function(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return the ``compute_loss_func`` argument of a Trainer, from a loss of logits and labels.

    With gradient accumulation, the weight of each batch is the number of its labels other than -100.

    Args:
        loss: A function of logits ``(M, C)`` and labels ``(M,)``, or soft labels ``(M, C)``. It must return the mean
            over samples, and ignore samples with the label -100, as `SoftmaxMarginLoss` does. It gets the Trainer's
            logits ``(N, ..., C)`` and labels ``(N, ...)`` in flattened shapes.

    Raises:
        ValueError: In training, if the shapes of logits and labels do not match.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import ConcernLoss
        >>> compute = loss_function(ConcernLoss())
        >>> compute({"logits": torch.tensor([[2.0, 0.0]])}, torch.tensor([0]), num_items_in_batch=torch.tensor(2))
        tensor(0.0635)
    """

    def compute(
        outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        scores = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
        logits, target = _rows(scores, labels.to(scores.device))
        if num_items_in_batch is None:
            return loss(logits, target)
        share = (target != IGNORED).sum() / num_items_in_batch
        if not share:  # a mean over no labels is NaN; this 0 has gradients
            return logits.sum() * 0.0
        return loss(logits, target) * share

    return compute


class SelectCheckpoint(CheckpointCallback, TrainerCallback):
    """Pass the model's state dict to a `CheckpointSelector` after each evaluation during training.

    After training, load the best checkpoint with ``model.load_state_dict(callback.selector.load_best())``. The
    selector's checkpoints are numbered by optimizer step or, if ``eval_strategy="epoch"``, by epoch from 1. An epoch
    that ``max_steps`` cuts short also counts. In a distributed run, rank 0 writes while the other ranks wait.

    With several evaluation sets, the metrics have names such as ``clean_mpcs_loss``, and the rule may name metrics of
    several sets. With ``patience``, the Trainer stops as with `EarlyStoppingCallback`. In a hyperparameter search, each
    trial has a selector of its own, in a subfolder with the name that ``hp_name`` returns for the trial. A training
    that begins again because of ``auto_find_batch_size``, after epochs were recorded, is in the subfolder
    ``restart-1``.

    To resume, use the Trainer's checkpoints. With ``eval_strategy="epoch"`` and ``save_strategy="steps"``, the Trainer
    can save a checkpoint at the last step of an epoch, before the evaluation. A run resumed from there would skip the
    evaluation, and a step of `MPCSLR` or `ReduceLROnPlateau`. So such a checkpoint is saved after the evaluation.

    Args:
        selector_or_folder: A `CheckpointSelector`, or the folder of a new one.
        rule: The rule of a new selector. It names metrics as ``compute_metrics`` does; a prefix ``eval_`` is optional.
        **options: The other arguments of a new `CheckpointSelector`.

    Attributes:
        selector: The `CheckpointSelector`; in a hyperparameter search, that of the current or last trial.

    Raises:
        ArgumentsError: If the arguments do not fit together; a TypeError.
        ValueError, FileExistsError: In the same cases as `CheckpointSelector`.
        ValueError: From ``Trainer.train``, if the Trainer does not evaluate, or if `MPCSLR` would follow no
            metric, or one for which higher is better; from
            ``Trainer.hyperparameter_search``, without ``hp_name``.
        MissingMetricError: From ``Trainer.train``, after an evaluation that lacks a metric of the rule; a ValueError.
        TrainedTwiceError: From ``Trainer.train``, if this callback has recorded another training; a RuntimeError.

    Example:
        >>> import tempfile
        >>> from mpcs_torch.learning import SelectionRule
        >>> callback = SelectCheckpoint(tempfile.mkdtemp(), SelectionRule("mpcs_loss", {"mpcs_loss": "min"}))
    """

    remedy = " from the evaluation"

    _first_selector: CheckpointSelector | None = None
    """The selector of the first training, whose settings those of later ones have."""
    _restarts = 0
    """The number of times that this training began again with a smaller batch, after epochs were recorded."""
    _is_training = False
    _is_save_deferred = False
    _evaluated: Mapping[str, float] = MappingProxyType({})
    """The values of an evaluation that is not recorded yet; several evaluation sets come one after the other."""
    _recorded_step = -1

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        """Begin to record evaluations, in a new selector for each trial of a hyperparameter search."""
        if args.eval_strategy == "no":
            raise InvalidValueError(
                "one_of", "eval_strategy", args.eval_strategy, choices=["epoch", "steps"]
            )
        follows_loss = args.metric_for_best_model is not None and not args.greater_is_better
        if isinstance(lr_scheduler, MPCSLR) and not follows_loss:
            raise InvalidValueError(
                "followed_metric",
                "metric_for_best_model",
                args.metric_for_best_model,
                greater_is_better=args.greater_is_better,
            )
        # With a smaller batch, after the Trainer has run out of memory.
        begins_again = self._is_training and args.auto_find_batch_size
        self._is_training = True
        self._recorded_step = -1
        self._evaluated = {}
        if not begins_again:
            self._restarts = 0
        elif self._has_recorded:
            self._restarts += 1
        if self._first_selector is None:
            self._first_selector = self.selector
        folder = self._folder_of_training(self._first_selector.folder, state)
        if folder != self.selector.folder:
            self.use(self._first_selector.renewed(folder))
        self.begin_training(is_new=state.global_step == 0 and not begins_again)

    def _folder_of_training(self, folder: Path, state: TrainerState) -> Path:
        """Return ``folder``, or its subfolder for the trial of a search and for a training that begins again."""
        if state.is_hyper_param_search:
            name = state.trial_name or ""
            if Path(name).name != name or not name:
                raise InvalidValueError("trial_name", "hp_name", name)
            folder /= name
        if self._restarts:
            folder /= f"restart-{self._restarts}"
        return folder

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Stop recording evaluations, because later ones may be on a test set."""
        self._is_training = False
        self._check_recorded()
        self.end_training()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Raise an error if the last evaluation lacked a metric of the rule."""
        self._check_recorded()

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: Any,
    ) -> None:
        """Defer a checkpoint that the Trainer would save at the end of an epoch until after the evaluation."""
        is_last = control.should_training_stop or float(state.epoch or 0).is_integer()
        is_followed = args.eval_strategy == "epoch" and is_last
        self._is_save_deferred = is_followed and control.should_save
        if self._is_save_deferred:
            control.should_save = False

    def on_epoch_end(
        self,
        args: TrainingArguments,  # noqa: ARG002
        state: TrainerState,  # noqa: ARG002
        control: TrainerControl,
        **_: Any,
    ) -> None:
        """Request the deferred checkpoint."""
        if self._is_save_deferred:
            control.should_save = True

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Update the selector once the evaluation sets have all metrics of the rule, numbered by epoch or step."""
        if not self._is_training:
            return
        if state.global_step in (0, self._recorded_step):  # 0: eval_on_start
            return
        metrics: Mapping[str, float] = kwargs["metrics"]
        if not any(name.startswith(EVALUATED) for name in metrics):
            return  # the user's own evaluation, of the training set for example
        without_prefix = {
            name.removeprefix(EVALUATED): value for name, value in metrics.items()
        }
        self._evaluated = {**self._evaluated, **metrics, **without_prefix}
        if any(name not in self._evaluated for name in self.selector.rule.metrics):
            return  # the next evaluation set may have them
        number = state.global_step
        if args.eval_strategy == "epoch":
            number = math.ceil(state.epoch or 0)
        values = self._evaluated
        self._evaluated = {}
        self._recorded_step = state.global_step
        if self.record(kwargs["model"].state_dict, epoch=number, values=values):
            control.should_training_stop = True

    def _check_recorded(self) -> None:
        """Raise an error if there is an evaluation that lacks a metric of the rule."""
        if self._evaluated:
            evaluated = self._evaluated
            self._evaluated = {}
            self.selector.rule.values_in(evaluated, self.remedy)


def _batches(prediction: EvalPrediction) -> Iterable[tuple[Any, Any]]:
    """Return pairs of outputs and labels: one pair, or one for each batch with ``eval_do_concat_batches=False``."""
    outputs, labels = prediction.predictions, prediction.label_ids
    if isinstance(labels, list):
        return zip(outputs, labels, strict=True)
    if isinstance(labels, tuple):
        raise InvalidValueError("one_kind_of_labels", "label_names", len(labels))
    return [(outputs, labels)]


def _counted_rows(outputs: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Return the logits (M, C) and the labels of the samples that are not padding."""
    if isinstance(outputs, tuple | list):
        outputs = outputs[0]
    logits, target = _rows(torch.as_tensor(outputs), torch.as_tensor(labels))
    if target.ndim > 1:  # soft labels
        return logits, target
    is_counted = target != IGNORED
    return logits[is_counted], target[is_counted]


def _rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Flatten logits (N, ..., C) to (M, C), and labels (N, ...) to (M,) or soft labels (N, ..., C) to (M, C)."""
    shape = logits.shape[:-1]
    if logits.ndim > 1 and labels.shape in (shape, (*shape, 1)):
        return logits.flatten(0, -2), labels.flatten()
    if logits.ndim > 1 and labels.shape == logits.shape and labels.is_floating_point():
        return logits.flatten(0, -2), labels.flatten(0, -2)
    shapes = [tuple(logits.shape), tuple(labels.shape)]
    raise InvalidValueError("classes_last", "logits", shapes)


def _is_never_distributed() -> bool:
    """Return False, so that torchmetrics gathers no states: the Trainer gathers the samples of all processes."""
    return False


def _ranked_name(name: str, metric: Metric) -> str:
    """Return ``name``, with the suffix ``_loss`` if lower is better; otherwise, it must not end in "loss"."""
    if metric.higher_is_better is False:
        return name if name.endswith("loss") else f"{name}_loss"
    if name.endswith("loss"):
        raise InvalidValueError(
            "named_loss",
            f"{name!r}",
            type=type(metric).__name__,
            direction=metric.higher_is_better,
        )
    return name
