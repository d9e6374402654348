"""Table III: what each metric costs, beside the paper's times."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torchmetrics.functional.classification import multiclass_confusion_matrix

from mpcs_torch.functional.concern.mpcs import pattern_terms, score_terms
from mpcs_torch.functional.quality.accuracy import accuracy_of
from mpcs_torch.functional.quality.macro_f1 import macro_f1_of
from mpcs_torch.functional.quality.matthews_correlation import matthews_correlation_of
from mpcs_torch.paper.published import BENCHMARKS, TABLE_3
from mpcs_torch.tables import Table
from mpcs_torch.trainer.evaluation import Evaluator

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
        """What a metric costs with the forward pass before it, as a multiple of accuracy's."""
        return (self.forward + self.alone[metric]) / (self.forward + self.alone["accuracy"])


@torch.no_grad()
def measure_costs(model: nn.Module, evaluator: Evaluator) -> MetricCosts:
    """Time each metric behind a forward pass of its own, in turn, round after round, the first for warm-up only.

    A pass is the same before every metric, so its times are pooled: sums of medians compare the metrics, where times of
    passes with a metric behind would compare the noise of the passes.
    """
    metrics = _metrics(evaluator.logits(model), evaluator)
    passes: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in metrics}
    start = time.perf_counter()
    for done in range(1 + MAX_ROUNDS):
        for name, metric in metrics.items():
            passes.append(_seconds(lambda: evaluator.logits(model), evaluator.data.train_labels.device))
            seconds[name].append(_seconds(metric, evaluator.data.train_labels.device))
        if done >= MIN_ROUNDS and time.perf_counter() - start > BUDGET_SECONDS:
            break
    alone = {name: 1000 * median(times[1:]) for name, times in seconds.items()}
    return MetricCosts(1000 * median(passes[len(metrics) :]), alone)


def _metrics(logits: Tensor, evaluator: Evaluator) -> dict[str, Callable[[], float]]:
    """As a turn computes them, without the checks that a model's own output cannot fail, but each by itself."""
    target = evaluator.data.train_labels
    concern = evaluator.concern.matrix().to(logits.device)
    num_classes = logits.shape[1]

    def confusion() -> Tensor:
        return multiclass_confusion_matrix(logits.argmax(dim=1), target, num_classes=num_classes, validate_args=False)

    def mean_squared_error() -> float:
        column = target.unsqueeze(1)
        hits = torch.full_like(column, -1, dtype=logits.dtype)
        return logits.softmax(dim=1).scatter_add(1, column, hits).square().mean().item()

    def mpcs() -> float:
        terms = pattern_terms(logits.softmax(dim=1), target, k=evaluator.k, t=evaluator.t, concern=concern)
        return score_terms(terms, k=evaluator.k, correct_concern="count").mean().item()

    return {
        "accuracy": lambda: accuracy_of(confusion()).item(),
        "f1_macro": lambda: macro_f1_of(confusion()).item(),
        "mcc": lambda: matthews_correlation_of(confusion()).item(),
        "mean_squared_error": mean_squared_error,
        "cross_entropy": lambda: cross_entropy(logits, target).item(),
        "mpcs": mpcs,
    }


def _seconds(task: Callable[[], object], device: torch.device) -> float:
    _synchronize(device)
    start = time.perf_counter()
    task()
    _synchronize(device)
    return time.perf_counter() - start


def _synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def table_3(costs: Mapping[str, MetricCosts]) -> Table:
    """Milliseconds alone, and with the forward pass as a multiple of accuracy's (the paper's in brackets)."""
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
    """The numbers behind Table III, one row for each experiment and metric; times in milliseconds."""
    rows = []
    for name, cost in costs.items():
        for i, metric in enumerate(TIMED):
            printed = [f"{TABLE_3[name][i]}", f"{_printed_relative(name, metric):.4f}"] if name in TABLE_3 else ["", ""]
            times = (cost.alone[metric], cost.forward + cost.alone[metric], cost.relative(metric))
            rows.append([name, metric, *(f"{value:.4f}" for value in times), *printed])
    header = ["experiment", "metric", "alone", "with_forward", "relative", "paper_with_forward", "paper_relative"]
    return Table(header, rows)


def dearer_than_printed(costs: Mapping[str, MetricCosts]) -> list[str]:
    """The cells of Table III where ours costs more than the paper's, each relative to its accuracy."""
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
