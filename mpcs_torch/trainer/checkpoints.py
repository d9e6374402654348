"""The checkpoints that a run's selector keeps."""

from pathlib import Path
from typing import Any

import torch

from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.trainer.learning_config import SelectorConfig
from mpcs_torch.trainer.loop import Hook, LoopState, Turn

FOLDER = "checkpoints"
"""Inside the run's folder."""


def open_selector(config: SelectorConfig, run_folder: Path) -> CheckpointSelector:
    """The selector of a run, new or with the ledger of a finished one."""
    return CheckpointSelector(
        run_folder / FOLDER,
        config.rule(),
        top_k=config.top_k,
        keep_last=config.keep_last,
        keep_every=config.keep_every,
    )


def selector_hook(selector: CheckpointSelector) -> Hook:
    """A hook that enters every turn."""

    def enter(turn: Turn, state: LoopState) -> None:
        selector.update(lambda: checkpoint(state), epoch=turn.number, **turn.evaluation.values)

    return enter


def checkpoint(state: LoopState) -> dict[str, Any]:
    """Tensors and plain values, which ``torch.load(weights_only=True)`` reads."""
    return {
        "model": state.model.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "turns": state.turns,
        "steps": state.steps,
        "random_state": torch.get_rng_state(),
    }
