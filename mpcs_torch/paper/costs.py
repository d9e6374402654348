"""Table III: the time of each metric, beside the paper's times."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from mpcs_torch.paper.published import BENCHMARKS, TABLE_3
from mpcs_torch.tables import Table
from mpcs_torch.trainer.evaluation import inputs_of
from mpcs_torch.trainer.loop import PreparedRun
from mpcs_torch.trainer.prepare import metrics_of

TIMED = (*BENCHMARKS, "mpcs")
MIN_ROUNDS, MAX_ROUNDS, BUDGET_SECONDS = 5, 50, 5.0


@dataclass(frozen=True)
class MetricCosts:
    """Median milliseconds of one evaluation of the training samples."""

    forward: float
    """The model's forward pass."""
    alone: dict[str, float]
    """Each metric from the logits, its value brought to the host."""

    def relative(self, metric: str) -> float:
        """Return the time of a metric and its forward pass as a multiple of that of accuracy."""
        return (self.forward + self.alone[metric]) / (self.forward + self.alone["accuracy"])


@torch.no_grad()
def measure_costs(run: PreparedRun) -> MetricCosts:
    """Time each metric after a forward pass of its own, round after round; the first round is a warm-up.

    The forward pass is the same for every metric, so its times are pooled. Timing passes and metrics together would
    compare the noise of the passes.
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
    """Return a function that computes a metric from the logits, as an epoch does, softmax included."""
    target = run.evaluator.split.labels
    metrics = metrics_of(run.config, run.data, logits.device, only=[name])

    def compute() -> float:
        metrics.reset()
        metrics.update(inputs_of(logits, metrics.takes), target)
        return metrics.results().values[name]

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
    """Return Table III: milliseconds alone, and with the forward pass relative to accuracy (in brackets: paper)."""
    rows = []
    for name, cost in costs.items():
        cells = []
        for metric in TIMED:
            printed = _printed_relative(name, metric)
            relative = f"x{cost.relative(metric):.3f}" + ("" if printed is None else f" (x{printed:.3f})")
            cells.append(f"{_milliseconds(cost.alone[metric])}, {relative}")
        rows.append([name, _milliseconds(cost.forward), *cells])
    return Table(["ours (paper)", "forward pass", *TIMED], rows)


def table_3_values(costs: Mapping[str, MetricCosts]) -> Table:
    """Return the numbers behind Table III in milliseconds, one row for each experiment and metric."""
    rows = []
    for name, cost in costs.items():
        for i, metric in enumerate(TIMED):
            printed = [f"{TABLE_3[name][i]}", f"{_printed_relative(name, metric):.4f}"] if name in TABLE_3 else ["", ""]
            times = (cost.alone[metric], cost.forward + cost.alone[metric], cost.relative(metric))
            rows.append([name, metric, *(f"{value:.4f}" for value in times), *printed])
    header = ["experiment", "metric", "alone", "with_forward", "relative", "paper_with_forward", "paper_relative"]
    return Table(header, rows)


def more_expensive_than_printed(costs: Mapping[str, MetricCosts]) -> list[str]:
    """Return the cells of Table III where our time, relative to accuracy, exceeds the paper's."""
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
