"""A callback for Lightning: `SelectCheckpoint` keeps the best epochs and stops the training.

This module uses `pytorch_lightning` if it is installed, otherwise `lightning`. `MPCSLR` needs no adapter, because
Lightning passes the monitored metric to it::

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": MPCSLR(optimizer), "monitor": "mpcs"}}

    best = SelectCheckpoint("checkpoints", SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore}), patience=5)
    trainer = Trainer(callbacks=[best])  # ModelCheckpoint may be added
    trainer.fit(model, train, validation)
    trainer.test(dataloaders=test, ckpt_path="best")
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import proxy

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.integrations.checkpoints import CheckpointCallback
from mpcs_torch.learning import CheckpointSelector, SelectionRule

if TYPE_CHECKING:
    from pytorch_lightning import LightningModule, Trainer
    from pytorch_lightning.callbacks import Checkpoint
else:
    try:
        from pytorch_lightning.callbacks import Checkpoint
    except ModuleNotFoundError:
        from lightning.pytorch.callbacks import Checkpoint

__all__ = ["SelectCheckpoint"]

LOGGED = "mpcs_torch.callback_metrics"
"""The key of a checkpoint under which logged values are saved."""


class SelectCheckpoint(CheckpointCallback, Checkpoint):
    """Keep the Trainer's checkpoints of the best epochs with a `CheckpointSelector` during `Trainer.fit`.

    The attribute ``selector`` is the `CheckpointSelector`; it records all values logged in validation, under the names
    that `ModelCheckpoint` finds (``mpcs/dataloader_idx_1``, for example). Its files are complete Lightning checkpoints:
    ``ckpt_path="best"`` of ``Trainer.test`` and others uses the best one, if this is the first checkpoint callback. Or
    pass ``best_model_path`` to ``Trainer.fit(ckpt_path=...)`` or ``load_from_checkpoint``, with ``weights_only=True``,
    or take the weights from ``selector.load_best()["state_dict"]``. In a distributed run, rank 0 writes while the other
    ranks wait. With this callback, the Trainer does not add its default `ModelCheckpoint`.

    With ``patience``, the Trainer stops as with Lightning's `EarlyStopping`.

    Lightning saves a checkpoint before the step of a scheduler that monitors a metric, and does not make up for the
    step when a run resumes. This callback does, so that the learning rates are those of an uninterrupted run.

    Args:
        selector_or_folder: A `CheckpointSelector`, or the folder of a new one.
        rule: The rule of a new selector. The module must log the metrics of the rule in validation.
        save_on_train_epoch_end: Whether to record an epoch at the end of its training, with all values logged in this
            epoch, instead of after each validation. Default: only if there is no validation.
        **options: The other arguments of a new `CheckpointSelector`.

    Raises:
        ArgumentsError: If the arguments do not fit together; a TypeError.
        ValueError, FileExistsError: In the same cases as `CheckpointSelector`.
        MissingMetricError: From `Trainer.fit`, if a metric of the rule is not logged; a ValueError.
        ValueError: From `Trainer.fit`, before the training, if the Trainer would stop before the first validation, or
            if hyperparameters cannot be loaded with ``weights_only=True``, and the option ``weights_only=False`` is
            not given.
        TrainedTwiceError: From `Trainer.fit`, if this callback has recorded another training; a RuntimeError.

    Example:
        >>> import tempfile
        >>> from mpcs_torch import MetaPatternConcernScore
        >>> from mpcs_torch.integrations.lightning import SelectCheckpoint
        >>> from mpcs_torch.learning import SelectionRule
        >>> rule = SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore})
        >>> callback = SelectCheckpoint(tempfile.mkdtemp(), rule, top_k=2)
        >>> callback.selector.explain()  # when the Trainer has run
        Table(header=['picked by', 'epoch'], rows=[])
    """

    remedy = ": log it in validation_step; values that are only logged in training need save_on_train_epoch_end=True"

    def __init__(
        self,
        selector_or_folder: CheckpointSelector | str | Path,
        rule: SelectionRule | None = None,
        *,
        save_on_train_epoch_end: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(selector_or_folder, rule, **options)
        self.save_on_train_epoch_end = save_on_train_epoch_end
        self._resumed_values: dict[str, float] = {}
        """The logged values, by name, in the checkpoint from which the run resumed."""
        self._values_before: dict[str, Tensor] = {}
        """The logged values, by name, when this validation or this epoch began."""

    @property
    def best_model_path(self) -> str:
        """The path of the best checkpoint; empty if there is none. It can be set, but always follows the selector."""
        return str(self.selector.best_path or "")

    @best_model_path.setter
    def best_model_path(self, path: str) -> None:
        """Ignore ``path``. The launcher of spawned processes sets it; the selector has read the folder already."""

    @property
    def best_model_score(self) -> Tensor | None:
        """The value of the ranking metric in the best epoch; None if there is none."""
        best = self.selector.best
        return None if best is None else torch.tensor(best.values[self.selector.rule.by])

    @property
    def last_model_path(self) -> str:
        """The path of the checkpoint of the last epoch (see ``keep_last``); empty if it was not kept."""
        return str(self.selector.last_path or "")

    def on_save_checkpoint(
        self,
        trainer: "Trainer",
        pl_module: "LightningModule",  # noqa: ARG002  # a hook
        checkpoint: dict[str, Any],
    ) -> None:
        """Add the logged values to the checkpoint: schedulers may monitor them, and Lightning does not save them."""
        checkpoint[LOGGED] = {
            name: float(value) for name, value in trainer.callback_metrics.items()
        }

    def on_load_checkpoint(
        self,
        trainer: "Trainer",  # noqa: ARG002
        pl_module: "LightningModule",  # noqa: ARG002
        checkpoint: dict[str, Any],
    ) -> None:
        """Load the logged values. `on_train_start` restores them, after the Trainer has reset its values."""
        self._resumed_values = checkpoint.get(LOGGED, {})

    def on_fit_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Raise an error if hyperparameters cannot be loaded again, or the Trainer would stop before a validation."""
        if trainer.is_global_zero:
            self.selector.check({"hyper_parameters": dict(pl_module.hparams)})
        every = trainer.check_val_every_n_epoch or 1
        epochs = trainer.max_epochs or -1  # -1: no maximum
        if 0 < epochs < every and not self._records_after_training(trainer):
            raise InvalidValueError(
                "no_validation", "check_val_every_n_epoch", every, maximum=epochs
            )

    def on_train_start(self, trainer: "Trainer", *_: Any) -> None:
        """Restore the logged values, and take the scheduler steps that a resumed run would skip."""
        self.begin_training(is_new=trainer.global_step == 0)
        for name, value in self._resumed_values.items():
            trainer.callback_metrics[name] = torch.tensor(value)
        # A checkpoint that ModelCheckpoint saved at an epoch end lacks the scheduler steps of the previous epoch.
        if trainer.fit_loop.resumed_on_epoch_end and self._makes_up_for_steps(trainer):
            progress = trainer.fit_loop.epoch_progress.current
            progress.completed -= 1
            _step_schedulers(trainer)
            progress.completed += 1

    def on_train_epoch_start(self, trainer: "Trainer", *_: Any) -> None:
        """Remember the values that were logged before this epoch."""
        self._values_before = dict(trainer.callback_metrics)

    def on_validation_start(self, trainer: "Trainer", *_: Any) -> None:
        """Remember the values that were logged before this validation, unless the whole epoch is recorded."""
        if not self._records_after_training(trainer):
            self._values_before = dict(trainer.callback_metrics)

    def on_validation_end(self, trainer: "Trainer", *_: Any) -> None:
        """Update the selector with the values logged in this validation during `Trainer.fit`."""
        is_of_training = trainer.state.fn == "fit" and not trainer.sanity_checking
        if is_of_training and not self._records_after_training(trainer):
            self._record(trainer)

    def on_train_epoch_end(self, trainer: "Trainer", *_: Any) -> None:
        """Update the selector if it follows the training; take the scheduler steps that a resumed epoch skips."""
        if self._records_after_training(trainer):
            self._record(trainer)
        is_resumed = (
            trainer.fit_loop.restarting
            and trainer.fit_loop.epoch_loop._num_ready_batches_reached()
        )
        if is_resumed and self._makes_up_for_steps(trainer):
            _step_schedulers(trainer)

    def on_train_end(self, trainer: "Trainer", *_: Any) -> None:
        """Warn if no epoch was recorded."""
        if not trainer.fast_dev_run:  # type: ignore[attr-defined]
            self.end_training()

    def _records_after_training(self, trainer: "Trainer") -> bool:
        if self.save_on_train_epoch_end is None:
            return not trainer.enable_validation
        return self.save_on_train_epoch_end

    def _makes_up_for_steps(self, trainer: "Trainer") -> bool:
        """Return whether this is the first `SelectCheckpoint` of the Trainer: only one takes the skipped steps."""
        callbacks: Any = trainer.callbacks  # type: ignore[attr-defined]
        of_this_class = [one for one in callbacks if isinstance(one, SelectCheckpoint)]
        return of_this_class[0] is self

    def _record(self, trainer: "Trainer") -> None:
        if trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        # Lightning replaces the value of a name whenever it is logged. Values of earlier epochs remain: leave them out.
        before = self._values_before
        logged = trainer.callback_metrics
        values = {
            name: float(value)
            for name, value in logged.items()
            if value is not before.get(name)
        }
        should_stop = self.record(
            lambda: trainer._checkpoint_connector.dump_checkpoint(weights_only=False),
            epoch=trainer.current_epoch,
            values=values,
            others=values,
        )
        trainer.should_stop = trainer.should_stop or should_stop
        if trainer.is_global_zero and self.selector.epochs[-1].file is not None:
            for logger in trainer.loggers:
                logger.after_save_checkpoint(proxy(self))


def _step_schedulers(trainer: "Trainer") -> None:
    """Step the schedulers as at the end of an epoch."""
    trainer.fit_loop.epoch_loop.update_lr_schedulers(
        "epoch", update_plateau_schedulers=True
    )
