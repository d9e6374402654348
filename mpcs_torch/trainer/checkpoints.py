"""The checkpoints that a run's selector keeps."""

from pathlib import Path
from typing import Any

import torch

from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.trainer.config.run import RunConfig
from mpcs_torch.trainer.loop import Hook, LoopState

FOLDER = "checkpoints"
"""Inside the run's folder."""


def open_selector(config: RunConfig, run_folder: Path, *, flush: bool = True) -> CheckpointSelector | None:
    """Open the selector of a run, new or with the ledger of a finished one; None if the config has none."""
    selector = config.selector
    if selector is None:
        return None
    return CheckpointSelector(
        run_folder / FOLDER,
        selector.rule(config.directions),
        top_k=selector.top_k,
        keep_last=selector.keep_last,
        keep_every=selector.keep_every,
        keep_best_by=[name for name in selector.keep_best_by if name in config.directions],
        resume=True,  # the trainer has cleared the folder of a new run
        flush=flush,
    )


def selector_hook(selector: CheckpointSelector) -> Hook:
    """Return a hook that offers every epoch to the selector."""
    return lambda epoch, state: selector.update(lambda: checkpoint(state), epoch=epoch.number, **epoch.values)


def checkpoint(state: LoopState) -> dict[str, Any]:
    """Return the state of a run as tensors and plain values, which ``torch.load(weights_only=True)`` reads."""
    return {
        "model": state.measured.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "epochs": state.epochs,
        "steps": state.steps,
        "random_state": torch.get_rng_state(),
    }
