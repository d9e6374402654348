"""A callback for Lightning: `SelectCheckpoint` keeps the best epochs.

This module uses `pytorch_lightning` if it is installed, otherwise `lightning`. `MPCSLR` needs no adapter, because
Lightning passes the monitored metric to it::

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": MPCSLR(optimizer), "monitor": "mpcs"}}

    best = SelectCheckpoint("checkpoints", SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore}))
    trainer = Trainer(callbacks=[best])  # ModelCheckpoint may be added
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

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


class SelectCheckpoint(Checkpoint):
    """Keep the Trainer's checkpoints of the best epochs with a `CheckpointSelector` during `Trainer.fit`.

    The attribute ``selector`` is the `CheckpointSelector`; it records all values logged in validation. Its files are
    complete Lightning checkpoints. Pass the path ``selector.folder / selector.best.file`` to
    ``Trainer.fit(ckpt_path=...)`` or ``load_from_checkpoint``, with ``weights_only=True``, or take the weights from
    ``selector.load_best()["state_dict"]``. In a distributed run, rank 0 writes while the other ranks wait. With this
    callback, the Trainer does not add its default `ModelCheckpoint`.

    Lightning saves a checkpoint before the step of a scheduler that monitors a metric, and does not make up for the
    step when a run resumes. This callback does, so that the learning rates are those of an uninterrupted run.

    Args:
        folder: As in `CheckpointSelector`.
        rule: The rule. The module must log the metrics of the rule in validation.
        **options: The other arguments of `CheckpointSelector`.

    Raises:
        ValueError, FileExistsError: In the same cases as `CheckpointSelector`.
        MissingMetricError: A ValueError, from `Trainer.fit`, if a metric of the rule is not logged.

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

    def __init__(self, folder: str | Path, rule: SelectionRule, **options: Any) -> None:
        self.selector = CheckpointSelector(folder, rule, **options)
        self._logged: dict[str, float] = {}
        """The logged values, by name, in the checkpoint from which the run resumed."""

    def on_save_checkpoint(
        self,
        trainer: "Trainer",
        pl_module: "LightningModule",  # noqa: ARG002  # a hook
        checkpoint: dict[str, Any],
    ) -> None:
        """Add the logged values to the checkpoint: schedulers may monitor them, and Lightning does not save them."""
        checkpoint[LOGGED] = {name: float(value) for name, value in trainer.callback_metrics.items()}

    def on_load_checkpoint(
        self,
        trainer: "Trainer",  # noqa: ARG002
        pl_module: "LightningModule",  # noqa: ARG002
        checkpoint: dict[str, Any],
    ) -> None:
        """Load the logged values. `on_train_start` restores them, after the Trainer has reset its values."""
        self._logged = checkpoint.get(LOGGED, {})

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:  # noqa: ARG002
        """Restore the logged values, and take the scheduler steps that a resumed run would skip."""
        trainer.callback_metrics.update({name: torch.tensor(value) for name, value in self._logged.items()})
        if trainer.fit_loop.resumed_on_epoch_end:  # from a checkpoint that ModelCheckpoint saved at an epoch end
            progress = trainer.fit_loop.epoch_progress.current
            progress.completed -= 1  # these scheduler steps belong to the previous epoch
            trainer.fit_loop.epoch_loop.update_lr_schedulers("epoch", update_plateau_schedulers=True)
            progress.completed += 1

    def on_train_epoch_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:  # noqa: ARG002
        """Take the scheduler steps that Lightning skips at the end of the epoch in which a run resumed."""
        if trainer.fit_loop.restarting and trainer.fit_loop.epoch_loop._num_ready_batches_reached():
            trainer.fit_loop.epoch_loop.update_lr_schedulers("epoch", update_plateau_schedulers=True)

    def on_validation_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:  # noqa: ARG002
        """Update the selector with the logged values in `Trainer.fit`, except in a sanity check or a fast run."""
        if trainer.state.fn != "fit" or trainer.sanity_checking or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        logged = trainer._logger_connector.metrics["callback"]  # callback_metrics is an epoch behind in training
        self.selector.rule.values_in(logged, ": log it in validation_step")
        # As in `Trainer.save_checkpoint`, all processes call this, because it gathers sharded models.
        checkpoint = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        if trainer.is_global_zero:
            values = {name: float(value) for name, value in logged.items() if name not in ("epoch", "state")}
            self.selector.update(checkpoint, epoch=trainer.current_epoch, **values)
        trainer.strategy.barrier("SelectCheckpoint")
