"""The paper's experiments by name: where their configs lie, and how one is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.trainer.config import RunConfig, load_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import Hook, LoopState, Turn
from mpcs_torch.trainer.records import Record, as_record

EXPERIMENTS = (*(f"exp{number:02}" for number in range(1, 11)), "case-study")


@dataclass(frozen=True)
class FinishedRun:
    """A run with all that its tables and figures are made from."""

    config: RunConfig
    records: list[Record]
    confusions: list[Tensor]
    """Per turn, of the training set: int64 (C, C), rows true classes."""
    concern: ConcernSpec


def experiment_config(name: str) -> RunConfig:
    """The config of an experiment, from the installed package or from the repository."""
    package = Path(__file__).parents[1]
    root = package / "configs" if (package / "configs").is_dir() else package.parent / "configs"
    return load_config(root / "experiments" / f"{name}.yaml")


def finish_run(
    config: RunConfig, data: DataSplits, folder: Path, hooks: Sequence[Hook] = (), *, overwrite: bool = False
) -> FinishedRun:
    """Run in a folder, and keep each turn's record and confusion matrix."""
    turns: list[Turn] = []

    def keep(turn: Turn, state: LoopState) -> None:  # noqa: ARG001  # a Hook
        turns.append(turn)

    run_in_folder(config, data, folder, [keep, *hooks], overwrite=overwrite)
    return FinishedRun(
        config,
        [as_record(turn) for turn in turns],
        [turn.evaluation.confusion for turn in turns],
        config.score.concern.spec(data.class_names),
    )
