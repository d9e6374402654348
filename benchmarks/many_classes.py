"""Print the memory of the states of each metric of the register, and the time of an update, for many classes.

``python -m benchmarks.many_classes``; an update has 64 rows, and stands beside that of torchmetrics' accuracy.
"""

from statistics import median
from time import perf_counter

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy

from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.metrics.named_metrics import ENTRIES
from mpcs_torch.tables import Table

CLASSES = (2, 1000, 10_000, 50_257)
ROWS, TIMES = 64, 5


def seconds(metric: Metric, batch: tuple[Tensor, Tensor]) -> float:
    """Return the median time of an update."""
    times = []
    for _ in range(TIMES + 1):
        metric.reset()
        start = perf_counter()
        metric.update(*batch)
        times.append(perf_counter() - start)
    return median(times[1:])


def batch_of(entry: MetricEntry, classes: int) -> tuple[Tensor, Tensor]:
    """Return a batch as a metric takes it."""
    logits, target = 3 * torch.randn(ROWS, classes), torch.randint(0, classes, (ROWS,))
    kinds = {
        "decisions": logits.argmax(1),
        "log_probabilities": logits.log_softmax(1),
        "trials": logits,
        "soft_labels": logits.softmax(1),
        "probabilities": logits.softmax(1),
    }
    soft = (3 * torch.randn(ROWS, classes)).softmax(1)
    return kinds[entry.takes], soft if entry.takes == "soft_labels" else target


def cell(entry: MetricEntry, classes: int) -> str:
    """Return KiB of the states and microseconds of an update, or the error of the constructor."""
    try:
        metric = entry.make(classes)
    except ValueError as error:
        return str(error).rpartition(" but ")[2]
    kept = sum(
        state.nbytes for state in metric.metric_state.values() if isinstance(state, Tensor)
    )
    return (
        f"{kept / 1024:.0f} KiB, {1e6 * seconds(metric, batch_of(entry, classes)):.0f} us"
    )


def main() -> None:
    """Print the table."""
    logits = [3 * torch.randn(ROWS, classes) for classes in CLASSES]
    theirs = [
        seconds(MulticlassAccuracy(classes, average="micro"), (scores, scores.argmax(1)))
        for classes, scores in zip(CLASSES, logits, strict=True)
    ]
    rows = [
        [
            "torchmetrics MulticlassAccuracy, from scores",
            *(f"{1e6 * time:.0f} us" for time in theirs),
        ]
    ]
    seen = set()
    for entry in ENTRIES:
        made = (entry.metric, tuple(sorted(map(str, entry.settings.items()))), entry.takes)
        if made not in seen:  # entries may differ by their key alone
            seen.add(made)
            rows.append([entry.name, *(cell(entry, classes) for classes in CLASSES)])
    print(
        Table(["metric", *(f"{classes} classes" for classes in CLASSES)], rows).markdown()
    )


if __name__ == "__main__":
    main()
