"""Measure how often intervals of metrics of torchmetrics hold the true value: python -m benchmarks.any_metric.

Independent rows, clusters of equal sizes and clusters of 1 to 12 rows, of a classifier of 4 classes. The true value is
that of 400 000 rows. Metrics that no valid interval is known for must say so instead: ``given`` is the share of draws
with an interval.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import (
    BinaryAUROC,
    BinaryAveragePrecision,
    MulticlassAUROC,
    MulticlassCalibrationError,
    MulticlassCohenKappa,
    MulticlassF1Score,
    MulticlassJaccardIndex,
    MulticlassMatthewsCorrCoef,
    MulticlassRecall,
    MulticlassSpecificity,
)
from torchmetrics.regression import (
    ExplainedVariance,
    MeanAbsoluteError,
    MeanSquaredError,
    R2Score,
    SpearmanCorrCoef,
)
from torchmetrics.retrieval import RetrievalMAP

from mpcs_torch import WithInterval
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.tables import Table

CLASSES, ROWS = 4, 800
SHARES = torch.tensor([0.5, 0.25, 0.15, 0.1])


class Draw(NamedTuple):
    """Rows of a classifier."""

    probs: Tensor
    """(n, C)"""
    target: Tensor
    """(n,)"""
    clusters: Tensor | None


class MedianLoss(Metric):
    """A quantile, for which the jackknife does not hold."""

    losses: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("losses", [], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.losses.append(-preds[torch.arange(len(target)), target].log())

    def compute(self) -> Tensor:
        return torch.cat(self.losses).median()


def classes(draw: Draw) -> tuple[Tensor, ...]:
    return draw.probs, draw.target


def second(draw: Draw) -> tuple[Tensor, ...]:
    return draw.probs[:, 1], (draw.target == 1).long()


def numbers(draw: Draw) -> tuple[Tensor, ...]:
    return draw.probs.double() @ torch.arange(4).double(), draw.target.double()


METRICS: dict[str, tuple[Callable[[], Metric], Callable[[Draw], tuple[Tensor, ...]]]] = {
    "quadratic kappa": (
        lambda: MulticlassCohenKappa(CLASSES, weights="quadratic"),
        classes,
    ),
    "macro AUROC": (lambda: MulticlassAUROC(CLASSES), classes),
    "macro F1": (lambda: MulticlassF1Score(CLASSES, average="macro"), classes),
    "macro recall": (lambda: MulticlassRecall(CLASSES, average="macro"), classes),
    "macro specificity": (lambda: MulticlassSpecificity(CLASSES, average="macro"), classes),
    "Jaccard index": (lambda: MulticlassJaccardIndex(CLASSES), classes),
    "MCC": (lambda: MulticlassMatthewsCorrCoef(CLASSES), classes),
    "AUROC of a class": (BinaryAUROC, second),
    "average precision": (BinaryAveragePrecision, second),
    "mean squared error": (MeanSquaredError, numbers),
    "mean absolute error": (MeanAbsoluteError, numbers),
    "R2": (R2Score, numbers),
    "explained variance": (ExplainedVariance, numbers),
    "rank correlation": (SpearmanCorrCoef, numbers),
    "mean average precision": (RetrievalMAP, second),
    "calibration error": (lambda: MulticlassCalibrationError(CLASSES), classes),
    "median loss": (MedianLoss, classes),
}


def drawn(rows: int, design: str, generator: torch.Generator) -> Draw:
    """Draw rows; those of a cluster share how hard they are, and how the classifier errs."""
    sizes = torch.ones(rows, dtype=torch.int64)
    if design != "independent":
        sizes = (
            torch.full((rows // 5,), 5)
            if design == "clusters"
            else 1 + torch.arange(rows // 6) % 12
        )
    clusters = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    target = torch.multinomial(SHARES, len(clusters), replacement=True, generator=generator)
    noise = torch.randn(len(clusters), CLASSES, generator=generator)
    shared = torch.randn(len(sizes), CLASSES, generator=generator)[clusters]
    weight = 0.0 if design == "independent" else 0.7
    scores = (
        1.5 * torch.eye(CLASSES)[target] + (1 - weight**2) ** 0.5 * noise + weight * shared
    )
    # Calibrated where rows are independent, so that the true calibration error is 0.
    probs = (1.5 * scores + SHARES.log()).softmax(1)
    return Draw(probs, target, None if design == "independent" else clusters)


def interval(name: str, draw: Draw) -> dict[str, float]:
    """Return the value and the interval of a metric."""
    make, inputs = METRICS[name]
    queries = (
        torch.arange(len(draw.target)) // 10 if draw.clusters is None else draw.clusters
    )
    is_retrieval = make is RetrievalMAP
    further: Any = {"indexes": queries} if is_retrieval else {}
    metric = WithInterval(make())
    for rows in torch.arange(len(draw.target)).split(80):
        named = {key: value[rows] for key, value in further.items()}
        units = queries if is_retrieval else draw.clusters
        metric.update(
            *(each[rows] for each in inputs(draw)),
            clusters=None if units is None else units[rows],
            **named,
        )
    return dict(
        zip(
            ("value", "low", "high"),
            (each.item() for each in metric.compute().values()),
            strict=True,
        )
    )


def truth(name: str, design: str) -> float:
    """Return the value of many rows."""
    draw = drawn(
        20_000 if name == "rank correlation" else 200_000,
        design,
        torch.Generator().manual_seed(10**6),
    )
    make, inputs = METRICS[name]
    metric = make()
    queries = (
        torch.arange(len(draw.target)) // 10 if draw.clusters is None else draw.clusters
    )
    metric.update(*inputs(draw), **({"indexes": queries} if make is RetrievalMAP else {}))
    return (
        0.0
        if name == "calibration error" and design == "independent"
        else float(metric.compute())
    )


def coverage(design: str, draws: int) -> Iterator[list[str]]:
    """Yield a row for each metric."""
    for name in METRICS:
        true, held, given = truth(name, design), 0, 0
        for seed in range(draws):
            ends = interval(name, drawn(ROWS, design, torch.Generator().manual_seed(seed)))
            given += ends["low"] == ends["low"]
            held += ends["low"] <= true <= ends["high"]
        yield [
            name,
            design,
            f"{100 * given / draws:.0f} %",
            f"{100 * held / given:.1f} %" if given else "",
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="Coverage of intervals of metrics of torchmetrics."
    )
    parser.add_argument("--draws", type=int, default=300)
    draws, designs = (
        parser.parse_args().draws,
        ("independent", "clusters", "unequal clusters"),
    )
    rows = list[list[str]]()
    with counting_bar("coverage", len(METRICS) * len(designs)) as advance:
        for design in designs:
            for row in coverage(design, draws):
                rows.append(row)
                advance()
    print(Table(["metric", "design", "given", "holds"], rows).markdown())


if __name__ == "__main__":
    main()
