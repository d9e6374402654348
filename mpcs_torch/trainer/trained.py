"""A finished run, read from its folder: records, result, and what its kept checkpoints predict."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import MpcsError
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.selection import Epoch
from mpcs_torch.metrics.by_name import Direction
from mpcs_torch.trainer.config.run import RunConfig, load_config
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.loop import PreparedRun
from mpcs_torch.trainer.prepare import prepare_run
from mpcs_torch.trainer.records import Record, RecordsError, read_records
from mpcs_torch.trainer.result import RunResult, evaluator_of, read_result
from mpcs_torch.trainer.resume import FOLDER, open_selector


class CheckpointError(MpcsError, ValueError):
    """A checkpoint that does not fit the config of its run."""


@dataclass(frozen=True)
class TrainedRun:
    """A finished run."""

    folder: Path
    config: RunConfig
    records: list[Record]
    result: RunResult
    prepared: PreparedRun
    """The run as it was before training, with its data."""
    selector: CheckpointSelector | None
    """The selector that kept checkpoints; None if the run keeps none."""

    @property
    def class_names(self) -> list[str]:
        """Return the classes in index order."""
        return list(self.prepared.data.class_names)

    @property
    def concern(self) -> ConcernSpec:
        """Return which errors matter."""
        return self.config.score.concern.spec(self.class_names)

    @property
    def test(self) -> Split:
        """Return the samples that the run was judged on."""
        return self.prepared.data.test

    def picks(self) -> dict[str, int]:
        """Return the epoch that each metric with a direction picks on its own; the first of equals."""
        epochs = [Epoch(int(record["epoch"]), record) for record in self.records]
        directions = self.directions()
        picked = SelectionRule(next(iter(directions)), directions).picked_by_each(epochs) if directions else {}
        return {column: epoch.number for column, epoch in picked.items()}

    def directions(self) -> Mapping[str, Direction]:
        """Return which way is better for the columns of the records, where that is known."""
        return {name: way for name, way in self.config.directions.items() if name in self.records[0]}

    def test_logits(self, epoch: int) -> Tensor | None:
        """Compute the logits (N, C) of the test samples at an epoch; None if its checkpoint was not kept."""
        return self.logits(self.test, epoch)

    @torch.no_grad()
    def logits(self, split: Split, epoch: int) -> Tensor | None:
        """Compute the logits (N, C) of samples at an epoch; None if its checkpoint was not kept.

        Raises:
            CheckpointError: If the checkpoint does not fit the model of the config.
        """
        saved = [] if self.selector is None else self.selector.epochs
        if self.selector is None or not any(one.number == epoch and one.file is not None for one in saved):
            return None
        model = self.prepared.state.measured
        try:
            model.load_state_dict(self.selector.load(epoch)["model"])
        except (RuntimeError, KeyError, TypeError) as error:
            line = str(error).splitlines()[0]
            raise CheckpointError(f"{self.folder}: the checkpoint of epoch {epoch} does not fit: {line}") from None
        with self.prepared.running():
            return evaluator_of(self.prepared, split)(model).logits.cpu()


def open_trained(folder: Path, data: Path | DataSplits) -> TrainedRun:
    """Read a finished run, with its data or the data root to load them from.

    Modules that its config names by import path are imported.

    Raises:
        ConfigError: If ``config.yaml`` breaks a rule, or does not fit the data.
        RecordsError: If ``records.csv`` breaks a rule or holds no epoch.
        ResultError: If the run has not finished.
        DataError: If the data are missing.
    """
    result = read_result(folder)
    config = load_config(folder / "config.yaml")
    records = read_records(folder / "records.csv")
    if not records:
        raise RecordsError(folder / "records.csv", "holds no epoch")
    prepared = prepare_run(config, data if isinstance(data, DataSplits) else config.data.load(data))
    selector = open_selector(config, folder) if (folder / FOLDER).is_dir() else None
    return TrainedRun(folder, prepared.config, records, result, prepared, selector)
