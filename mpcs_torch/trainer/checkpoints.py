"""Keep the checkpoints of a training run in a `CheckpointSelector`."""

from pathlib import Path
from typing import Any

import torch

from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.loop import Hook, MeasuredEpoch, TrainingRun

FOLDER = "checkpoints"
"""The name of the folder of checkpoints in the folder of a run."""
SETTINGS = {"top_k", "keep_last", "keep_every", "patience", "min_delta"}
"""The settings that a `CheckpointSelector` takes as a config has them."""


def open_selector(config: RunConfig, run_folder: Path) -> CheckpointSelector | None:
    """Open the checkpoint selector of the run in ``run_folder``; return None if ``config`` has no selector."""
    settings = config.selector
    if settings is None:
        return None
    return CheckpointSelector(
        run_folder / FOLDER,
        settings.rule(config.columns, config.directions),
        keep_best_by=[name for name in settings.keep_best_by if name in config.directions],
        resume=True,  # the folder of a new run was cleared
        **settings.model_dump(include=SETTINGS),
    )


def selector_hook(selector: CheckpointSelector) -> Hook:
    """Return a hook that adds epochs to ``selector``, and stops the run after too many epochs without progress."""

    def select(epoch: MeasuredEpoch, run: TrainingRun) -> str | None:
        selector.update(lambda: checkpoint(run), epoch=epoch.number, **epoch.values)
        # A resumed run repeats epochs that the selector knows.
        is_repeated = epoch.number != selector.last_epoch
        if is_repeated or not selector.should_stop:
            return None
        settings = f"selector.patience: {selector.patience}"
        if selector.min_delta:
            settings += f", selector.min_delta: {selector.min_delta:g}"
        if selector.best is None:
            return f"{selector.rule.by} was always NaN ({settings})"
        return f"the best epoch by the selector's rule is still {selector.best.number} ({settings})"

    return select


def checkpoint(run: TrainingRun) -> dict[str, Any]:
    """Return the content of a checkpoint of ``run``, as tensors and plain values."""
    return {
        "model": run.measured.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "epochs": run.epochs,
        "steps": run.steps,
        "random_state": torch.get_rng_state(),
    }
