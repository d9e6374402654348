"""Run the paper's experiments by name, time their metrics, and compare the results with those of the paper."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from timeit import timeit
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.metrics.named_metrics import COLUMNS as METRICS
from mpcs_torch.paper.published_values import (
    BENCHMARKS,
    CASE_STUDY_ERRORS,
    CASE_STUDY_PICKS,
    FIGURE_5,
    FIGURE_6,
    TIMED,
    Agreement,
    MeanOverRuns,
    MetricCosts,
    correlations,
    mean_interval,
    means_table,
    table_2,
    table_3,
)
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.load import load_packaged_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import Hook, MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.measuring import inputs_from_logits, value_of
from mpcs_torch.trainer.result import Record, first_best


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, with the data for tables and figures."""

    config: RunConfig
    records: list[Record]
    confusions: list[Tensor]
    """The confusion matrix of each epoch on the training set, int64 (C, C); rows are true classes."""
    seconds: float
    """The duration of training and evaluation."""
    costs: MetricCosts | None = None
    """The computing times of the metrics; None if times were not measured."""
    agreement: Agreement | None = None
    """The agreement with the published values of each epoch; None if such values were not published."""

    @property
    def title(self) -> str:
        """A text with the name, the model, the data, the epochs and the time."""
        config = self.config
        return f"{config.name}: {config.model} on {config.data}, {len(self.records)} epochs, {self.seconds:.0f} s"

    def plain(self, intervals: Sequence[MeanOverRuns] = ()) -> dict[str, Any]:
        """Return times, agreement and correlations for JSON; ``intervals`` has mean correlations over seeds."""
        return {
            "seconds": self.seconds,
            "epochs": len(self.records),
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "spearman": dict(zip(BENCHMARKS, correlations(self.records), strict=True)),
            "over_seeds": dict(zip(BENCHMARKS, map(asdict, intervals), strict=False)),
            "milliseconds": None if self.costs is None else asdict(self.costs),
        }


def experiment_config(name: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load the config of the experiment ``name``; ``overrides`` has texts such as "seed=1"."""
    return load_packaged_config(f"experiments/{name}", overrides)


def seeded_config(name: str, seed: int) -> RunConfig:
    """Load the config of the experiment ``name`` with ``seed``. A random split of the data uses ``seed``, too."""
    overrides = [f"name={name}-seed{seed:02}", f"seed={seed}"]
    if "split_seed" in (experiment_config(name).data.model_extra or {}):
        overrides.append(f"data.split_seed={seed}")
    return experiment_config(name, overrides)


def finish_run(
    config: RunConfig,
    data: DataSplits,
    folder: Path,
    hooks: Sequence[Hook] = (),
    *,
    overwrite: bool = False,
    time_metrics: bool = False,
) -> FinishedRun:
    """Train in ``folder``, collect metrics and confusion matrices of all epochs, and optionally time the metrics."""
    epochs = list[MeasuredEpoch]()
    start = time.perf_counter()

    def keep(epoch: MeasuredEpoch, run: TrainingRun) -> None:  # noqa: ARG001  # a Hook
        epochs.append(epoch)

    run, _ = run_in_folder(config, data, folder, [keep, *hooks], overwrite=overwrite)
    with run.running():
        costs = measure_costs(run) if time_metrics else None
    records = [epoch.record for epoch in epochs]
    confusions = [epoch.confusion for epoch in epochs]
    seconds = time.perf_counter() - start
    return FinishedRun(run.config, records, confusions, seconds, costs)


MIN_ROUNDS = 5
"""The minimum number of rounds in which metrics are timed, without the warm-up round."""
MAX_ROUNDS = 50
"""The maximum number of these rounds."""
BUDGET_SECONDS = 5.0
"""The time after which no further round begins, once there were `MIN_ROUNDS`."""


@torch.no_grad()
def measure_costs(run: TrainingRun) -> MetricCosts:
    """Return the median times of the forward pass and of each metric; a warm-up round is not counted.

    Metrics are timed without the forward pass, whose noise would hide the differences between metrics.
    """
    logits = run.logits(run.split)
    entries = {entry.name: (entry, made) for entry, made in run.metrics}
    passes: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in TIMED}
    start = time.perf_counter()
    for done in range(1 + MAX_ROUNDS):
        for name, times in seconds.items():
            metric = partial(_value, *entries[name], logits, run.split.labels)
            of_pass = timeit(lambda: run.logits(run.split), number=1)
            of_metric = timeit(metric, number=1)
            if done > 0:  # the first round is the warm-up
                passes.append(of_pass)
                times.append(of_metric)
        if done >= MIN_ROUNDS and time.perf_counter() - start > BUDGET_SECONDS:
            break
    alone = {name: 1000 * median(times) for name, times in seconds.items()}
    return MetricCosts(1000 * median(passes), alone)


def _value(entry: MetricEntry, made: Any, logits: Tensor, labels: Tensor) -> float:
    preds = inputs_from_logits(logits, {entry.takes})[entry.takes]
    return entry.number(value_of(made, preds, labels))


class EvaluationTable(NamedTuple):
    """A table of the paper's experiments."""

    name: str
    """The name of its file, without a suffix."""
    title: str
    table: Table


def evaluation_tables(
    finished: Mapping[str, FinishedRun], seeds: Mapping[str, Sequence[MeanOverRuns]]
) -> Iterator[EvaluationTable]:
    """Yield three tables: runs, Table II and Table III of the paper."""
    runs = {name: one.records for name, one in finished.items()}
    costs = {name: one.costs for name, one in finished.items() if one.costs is not None}
    rows = []
    for name, one in finished.items():
        agreement = ""
        if one.agreement is not None:
            agreement = f"{one.agreement.from_first} of {one.agreement.epochs}"
        model_and_data = f"{one.config.model} on {one.config.data}"
        rows.append([name, model_and_data, f"{one.seconds:.1f}", agreement])
    header = [
        "run",
        "model and data",
        "seconds",
        "epochs equal to the record, from the first",
    ]
    yield EvaluationTable("runs", "Runs", Table(header, rows))
    title_2 = "Table II: Spearman correlation of MPCS with the usual metrics"
    yield EvaluationTable("table2", title_2, table_2(runs, seeds))
    title_3 = "Table III: what a metric costs"
    yield EvaluationTable("table3", title_3, table_3(costs))


def picks(records: Sequence[Record]) -> dict[str, int]:
    """Return the first best epoch by each metric of the paper; metrics that are NaN in all epochs are left out."""
    return first_best(records, {name: METRICS[name].direction or "min" for name in TIMED})


def _errors(confusion: Tensor) -> int:
    return int(confusion.sum() - confusion.trace())


def picks_table(run: FinishedRun) -> Table:
    """Return a table of the epochs that metrics rank first: their metrics on the training set, and test accuracy."""
    metrics_by_epoch: dict[int, list[str]] = {}
    for metric, epoch in picks(run.records).items():
        metrics_by_epoch.setdefault(epoch, []).append(metric)
    rows = []
    for epoch, metrics in metrics_by_epoch.items():
        record = run.records[epoch - 1]  # epochs are counted from 1
        errors = _errors(run.confusions[epoch - 1])
        rows.append(
            [
                ", ".join(metrics),
                str(epoch),
                f"{100 * record['accuracy']:.2f} %",
                str(errors),
                f"{record['dangerous']:.0f}",
                f"{record['mpcs']:.4f}",
                f"{100 * record['test_accuracy']:.2f} %",
            ]
        )
    return Table(
        ["picked by", "epoch", "accuracy", "errors", "dangerous", "MPCS", "test accuracy"],
        rows,
    )


def figure_5_comparison(run: FinishedRun) -> list[Table | str]:
    """Return sentences and tables that compare ``run`` with Fig. 5 of the paper: picks, confusion matrices, errors."""
    ours = picks(run.records)
    parts: list[Table | str] = [
        f"{metric} picks epoch {ours.get(metric, 'none')} (paper: {epoch})"
        for metric, epoch in CASE_STUDY_PICKS.items()
    ]
    for epoch, printed in FIGURE_5.items():
        # The paper prints it with a row for each prediction.
        confusion = run.confusions[epoch - 1].t()
        equal = int((confusion == torch.tensor(printed)).sum())
        published = CASE_STUDY_ERRORS[epoch]
        parts.append(
            f"Epoch {epoch}: {_errors(confusion)} errors (paper: {published.errors}), "
            f"{run.records[epoch - 1]['dangerous']:.0f} dangerous (paper: {published.dangerous}); "
            f"{equal} of {confusion.numel()} cells of the confusion matrix are those of Fig. 5"
        )
        names = [*map(str, range(len(printed)))]
        rows = [
            [name, *map(str, row)]
            for name, row in zip(names, confusion.tolist(), strict=True)
        ]
        parts.append(Table(["predicted \\ true", *names], rows))
    return parts


FIGURE_6_RUNS = ("figure6-plain", "figure6-mpcs")
"""The experiments of Fig. 6: the plain run, and the run with MPCS in the loss."""
FIGURE_6_COLUMNS = {
    "train_accuracy": "accuracy",
    "test_accuracy": "test_accuracy",
    "mpcs": "mpcs_count",
    "dangerous": "dangerous",
}
"""The column of each compared metric in the records, by the name of the metric."""
HIGHER_IS_BETTER = ("accuracy", "test_accuracy")
"""The columns of Fig. 6 for which higher is better; for the others, lower is."""


def comparison_configs(seed: int | None = None) -> list[RunConfig]:
    """Load the configs of the plain run and the MPCS run of Fig. 6, with ``seed``, by default the published seed."""
    if seed is None:
        return [experiment_config(name) for name in FIGURE_6_RUNS]
    return [seeded_config(name, seed) for name in FIGURE_6_RUNS]


def ratios(plain: Sequence[Record], with_mpcs: Sequence[Record]) -> dict[str, float]:
    """Return the sum of each metric over the epochs of the MPCS run, divided by the sum for the plain run."""

    def total(records: Sequence[Record], column: str) -> float:
        return sum(record[column] for record in records)

    return {
        name: total(with_mpcs, column) / total(plain, column)
        for name, column in FIGURE_6_COLUMNS.items()
    }


def ratios_table(ours: Mapping[str, float]) -> Table:
    """Return a table that compares ``ours``, the `ratios` of the published seed, with the paper."""
    rows = [
        [name, f"{ratio:.4f}", f"{FIGURE_6[name]:.4f}", f"{ratio - FIGURE_6[name]:+.4f}"]
        for name, ratio in ours.items()
    ]
    return Table(
        ["sum over epochs, MPCS run / plain run", "ours", "paper", "difference"], rows
    )


def seeds_table(by_seed: Sequence[Mapping[str, float]]) -> Table:
    """Return a table of `ratios` over seeds: mean, 95 % interval, range, and how often the MPCS run is better."""
    rows = []
    for name, column in FIGURE_6_COLUMNS.items():
        values = [ratio[name] for ratio in by_seed]
        if column in HIGHER_IS_BETTER:
            better = sum(value > 1 for value in values)
        else:
            better = sum(value < 1 for value in values)
        cells = mean_interval(values).cells
        rows.append([name, *cells, f"{better} of {len(values)}"])
    return means_table("MPCS run / plain run", "seed", rows, "MPCS run better")
