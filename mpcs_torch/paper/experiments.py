"""The paper's experiments by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.paper.costs import MetricCosts, measure_costs
from mpcs_torch.trainer.config.run import RunConfig, load_packaged_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch
from mpcs_torch.trainer.records import Record, as_record


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, with the data of its tables and figures."""

    config: RunConfig
    records: list[Record]
    confusions: list[Tensor]
    """Per epoch, of the training set: int64 (C, C), rows true classes."""
    concern: ConcernSpec
    costs: MetricCosts | None
    """The times of the metrics on the trained model's predictions, if they were measured."""


def experiment_config(name: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load the config of an experiment."""
    return load_packaged_config(f"experiments/{name}", overrides)


def seeded_config(name: str, seed: int) -> RunConfig:
    """Load an experiment with another seed, which also splits the data where the experiment does."""
    overrides = [f"name={name}-seed{seed:02}", f"seed={seed}"]
    is_split_here = "split_seed" in (experiment_config(name).data.model_extra or {})
    return experiment_config(name, [*overrides, f"data.split_seed={seed}"] if is_split_here else overrides)


def finish_run(
    config: RunConfig,
    data: DataSplits,
    folder: Path,
    hooks: Sequence[Hook] = (),
    *,
    overwrite: bool = False,
    time_metrics: bool = False,
) -> FinishedRun:
    """Run in a folder, keep record and confusion matrix of each epoch, and optionally time the metrics at the end."""
    epochs: list[MeasuredEpoch] = []

    def keep(epoch: MeasuredEpoch, state: LoopState) -> None:  # noqa: ARG001  # a Hook
        epochs.append(epoch)

    run, _ = run_in_folder(config, data, folder, [keep, *hooks], overwrite=overwrite)
    with run.kernels():
        costs = measure_costs(run) if time_metrics else None
    records, confusions = [as_record(epoch) for epoch in epochs], [epoch.confusion for epoch in epochs]
    return FinishedRun(run.config, records, confusions, config.score.concern.spec(data.class_names), costs)
