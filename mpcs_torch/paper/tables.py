"""Tables II and III of the paper: the correlation of MPCS with other metrics, and the time of each metric."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median

import numpy as np
import torch
from scipy.stats import bootstrap
from torch import Tensor
from torchmetrics.functional import spearman_corrcoef

from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.paper.published import BENCHMARKS, TABLE_2, TABLE_3
from mpcs_torch.tables import Table
from mpcs_torch.trainer.evaluation import inputs_of
from mpcs_torch.trainer.loop import PreparedRun
from mpcs_torch.trainer.prepare import metrics_of
from mpcs_torch.trainer.records import Record


@dataclass(frozen=True)
class MeanOverRuns:
    """A mean over runs with its 95 % interval."""

    runs: int
    mean: float
    low: float
    high: float
    """The upper end of the interval; ``low`` is its lower end."""
    lowest: float
    highest: float
    """The highest value of a run; ``lowest`` is the lowest value."""


def mean_interval(values: Sequence[float]) -> MeanOverRuns:
    """Compute the mean and its 95 % interval by scipy's BCa bootstrap, with 9999 resamples and a fixed seed."""
    sample = np.asarray(values, dtype=np.float64)
    low = high = mean = float(sample.mean())
    if sample.min() < sample.max():  # otherwise there is nothing to resample
        resampled = bootstrap((sample,), np.mean, confidence_level=CONFIDENCE, rng=np.random.default_rng(0))
        low, high = map(float, resampled.confidence_interval)
    return MeanOverRuns(len(sample), mean, low, high, float(sample.min()), float(sample.max()))


def spearman(records: Sequence[Record], column: str, other: str) -> float:
    """Compute Spearman's rank correlation of two columns over the epochs of a run, with mean ranks for ties."""
    values = torch.tensor([[record[column], record[other]] for record in records], dtype=torch.float64)
    return float(spearman_corrcoef(values[:, 0], values[:, 1]))


def correlations(records: Sequence[Record]) -> tuple[float, ...]:
    """Compute the correlation of each benchmark with MPCS, which is counted as in the published runs."""
    return tuple(spearman(records, "mpcs_count", benchmark) for benchmark in BENCHMARKS)


def seed_intervals(runs: Sequence[Sequence[Record]]) -> tuple[MeanOverRuns, ...]:
    """Compute the interval of each benchmark's correlation over runs with different seeds."""
    return tuple(map(mean_interval, zip(*map(correlations, runs), strict=True)))


def table_2_row(name: str, records: Sequence[Record]) -> Table:
    """Return a table of the correlations of one experiment for both ways to count MPCS, next to those of the paper."""
    printed = TABLE_2.get(name)
    rows = []
    for i, (benchmark, ours) in enumerate(zip(BENCHMARKS, correlations(records), strict=True)):
        row = [benchmark, f"{spearman(records, 'mpcs', benchmark):.4f}", f"{ours:.4f}"]
        rows.append(row if printed is None else [*row, f"{printed[i]:.4f}", f"{ours - printed[i]:+.4f}"])
    header = ["Spearman with", "mpcs", "mpcs_count"]
    return Table(header if printed is None else [*header, "paper", "difference"], rows)


def table_2(runs: Mapping[str, Sequence[Record]], seeds: Mapping[str, Sequence[MeanOverRuns]]) -> Table:
    """Return Table II: our correlations, those of the paper in brackets, and the spread over seeds for accuracy."""
    rows = []
    for name, records in runs.items():
        paper = [f" ({printed:.3f})" for printed in TABLE_2[name]] if name in TABLE_2 else [""] * len(BENCHMARKS)
        cells = [f"{ours:.3f}{printed}" for ours, printed in zip(correlations(records), paper, strict=True)]
        spread = ""
        if name in seeds:
            _, mean, low, high, lowest, highest = astuple(seeds[name][0])
            spread = f"{mean:.3f} [{low:.3f}, {high:.3f}], runs {lowest:.3f} to {highest:.3f}"
        rows.append([name, *cells, spread])
    return Table(["ours (paper)", *BENCHMARKS, "accuracy, over seeds"], rows)


def intervals_table(intervals: Sequence[MeanOverRuns]) -> Table:
    """Return a table of the correlations over seeds: mean, 95 % interval, lowest and highest run."""
    rows = [
        [benchmark, *(f"{value:.4f}" for value in astuple(interval)[1:])]
        for benchmark, interval in zip(BENCHMARKS, intervals, strict=True)
    ]
    numbers = ["mean", f"{CONFIDENCE_TEXT} from", "to", "lowest run", "highest"]
    return Table(["Spearman of mpcs_count with", *numbers], rows)


TIMED = (*BENCHMARKS, "mpcs")
MIN_ROUNDS, MAX_ROUNDS, BUDGET_SECONDS = 5, 50, 5.0


@dataclass(frozen=True)
class MetricCosts:
    """Median milliseconds of one evaluation of the training samples."""

    forward: float
    """The model's forward pass."""
    alone: dict[str, float]
    """The time of each metric, from the logits to a value on the host."""

    def relative(self, metric: str) -> float:
        """Return the time of a metric with the forward pass, divided by that of accuracy."""
        return (self.forward + self.alone[metric]) / (self.forward + self.alone["accuracy"])


@torch.no_grad()
def measure_costs(run: PreparedRun) -> MetricCosts:
    """Time the forward pass and each metric, in rounds after a warm-up round.

    The times of all forward passes are pooled. If passes and metrics were timed together, differences between metrics
    would be hidden in the noise of the passes.
    """
    model, evaluator = run.state.model, run.evaluator
    device = evaluator.split.labels.device
    logits = evaluator.logits(model)
    metrics = {name: _timed(run, logits, name) for name in TIMED}
    passes: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in metrics}
    start = time.perf_counter()
    for done in range(1 + MAX_ROUNDS):
        for name, metric in metrics.items():
            passes.append(_seconds(lambda: evaluator.logits(model), device))
            seconds[name].append(_seconds(metric, device))
        if done >= MIN_ROUNDS and time.perf_counter() - start > BUDGET_SECONDS:
            break
    alone = {name: 1000 * median(times[1:]) for name, times in seconds.items()}
    return MetricCosts(1000 * median(passes[len(metrics) :]), alone)


def _timed(run: PreparedRun, logits: Tensor, name: str) -> Callable[[], float]:
    """Return a function that computes a metric from the logits, including the softmax."""
    target = run.evaluator.split.labels
    metrics = metrics_of(run.config, run.data, logits.device, only=[name])

    def compute() -> float:
        metrics.reset()
        metrics.update(inputs_of(logits, metrics.takes), target)
        return metrics.values()[name]

    return compute


def _seconds(task: Callable[[], object], device: torch.device) -> float:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    start = time.perf_counter()
    task()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter() - start


def table_3(costs: Mapping[str, MetricCosts]) -> Table:
    """Return Table III: milliseconds alone, and time with the forward pass relative to accuracy (paper in brackets)."""
    rows = []
    for name, cost in costs.items():
        cells = []
        for metric in TIMED:
            printed = _printed_relative(name, metric)
            relative = f"x{cost.relative(metric):.3f}" + ("" if printed is None else f" (x{printed:.3f})")
            cells.append(f"{_milliseconds(cost.alone[metric])}, {relative}")
        rows.append([name, _milliseconds(cost.forward), *cells])
    return Table(["ours (paper)", "forward pass", *TIMED], rows)


def more_expensive_than_printed(costs: Mapping[str, MetricCosts]) -> list[str]:
    """Return the cells of Table III where our time, relative to accuracy, exceeds that of the paper."""
    return [
        f"{name} {metric}: {cost.relative(metric):.4f} for {printed:.4f}"
        for name, cost in costs.items()
        for metric in TIMED
        if (printed := _printed_relative(name, metric)) is not None and cost.relative(metric) > printed
    ]


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value:.0f} ms"


def _printed_relative(name: str, metric: str) -> float | None:
    if name not in TABLE_3:
        return None
    return TABLE_3[name][TIMED.index(metric)] / TABLE_3[name][0]
