"""Time every family against PyTorch and torchmetrics: `make bench`, or ``python -m tests.benchmarks.bench``.

Ratios of medians of calls that are taken in turns, so that a noisy machine slows all of them alike. The table goes to
docs/results/benchmarks.md; ratios more than a third above those of the table that was there are marked.
"""

import argparse
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torchmetrics
from torch import Tensor
from torch.nn import functional as nn_functional
from torchmetrics import functional as theirs
from torchmetrics.classification import MulticlassF1Score

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch import functional as ours
from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.tables import Table
from tests.metrics.cases import CASES

Call = Callable[[], object]

SHAPES = ((64, 10), (60000, 10), (50000, 1000), (4096, 50257))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SECONDS = 0.3
"""For each call, on average; at least three rounds are taken."""
SQUARE = 2000
"""Metrics that hold a confusion matrix are timed up to this number of classes."""
NOISE = 4 / 3
TABLE = Path(__file__).parents[2] / "docs" / "results" / "benchmarks.md"


def medians(calls: Sequence[Call], finish: Call) -> list[float]:
    """Return the median seconds of each call, in turns, after one round that is not counted."""
    seconds: list[list[float]] = [[] for _ in calls]
    budget = SECONDS * len(calls)
    begun = perf_counter()
    while len(seconds[0]) < 4 or perf_counter() - begun < budget:
        for i, call in enumerate(calls):
            start = perf_counter()
            call()
            finish()
            seconds[i].append(perf_counter() - start)
    return [median(each[1:]) for each in seconds]


def batch_calls(logits: Tensor, target: Tensor) -> Iterator[tuple[str, Call]]:
    """Give the calls for a batch; the first is what they are compared with."""
    classes = logits.shape[1]
    probs = logits.float().softmax(dim=1)
    spec = ConcernSpec(classes, releases=[[i, (i + 1) % 10] for i in range(10)])
    concern = spec.matrix() if classes <= SQUARE else spec.sparse_matrix()
    settings: dict[str, Any] = {"num_classes": classes}
    unchecked = {**settings, "validate_args": False}
    score = ours.meta_pattern_concern_score
    yield "F.cross_entropy", lambda: nn_functional.cross_entropy(logits, target)
    yield "reading the logits once (amax)", lambda: logits.amax(dim=1)
    yield "softmax", lambda: logits.softmax(dim=1)
    yield "topk, k = 5, of probabilities", lambda: probs.topk(5)
    if classes <= 100:
        yield "sort of probabilities", lambda: probs.sort(dim=1)
    yield "**MPCS from logits**", lambda: score(logits, target, **settings)
    yield "**MPCS from logits, with a concern**", lambda: score(logits, target, **settings, concern=concern)
    yield "**MPCS from probabilities**", lambda: score(probs, target, **settings, from_logits=False)
    for title, checks in (("", True), (" without checks", False)):
        metric = MetaPatternConcernScore(**settings, validate_args=checks).to(logits.device)
        yield f"**MetaPatternConcernScore.update{title}**", lambda metric=metric: metric.update(logits, target)
    if logits.device.type == "cpu" and logits.numel() >= 10**5 and logits.dtype == torch.float32:
        compiled = torch.compile(lambda x, y: score(x, y, **settings))
        yield "**MPCS from logits, compiled**", lambda: compiled(logits, target)
    if logits.dtype != torch.float32:
        return
    yield "brier_score", lambda: ours.brier_score(logits, target, **settings)
    yield "cross_entropy", lambda: ours.cross_entropy(logits, target, **settings)
    yield "geometric_accuracy", lambda: ours.geometric_accuracy(logits, target, **settings)
    if classes <= SQUARE:
        dense, dangerous = spec.costs(), spec.dangerous_pairs()
        yield "probability_accuracy", lambda: ours.probability_accuracy(logits, target, **settings)
        yield "expected_concern", lambda: ours.expected_concern(logits, target, **settings, concern=dense)
        yield "dangerous_errors", lambda: ours.dangerous_errors(logits, target, **settings, concern=dangerous)
        yield "multiclass_quality_metrics", lambda: ours.multiclass_quality_metrics(logits, target, **settings)
    if classes <= 1000:
        labels = nn_functional.one_hot(target, classes).to(probs.dtype)
        yield "soft_f1", lambda: ours.soft_f1(probs, labels, **settings)
    yield (
        "torchmetrics multiclass_accuracy",
        lambda: theirs.classification.multiclass_accuracy(logits, target, **unchecked),
    )
    yield (
        "torchmetrics multiclass_f1_score",
        lambda: theirs.classification.multiclass_f1_score(logits, target, **unchecked),
    )
    if classes <= SQUARE:
        yield (
            "torchmetrics multiclass_matthews_corrcoef",
            lambda: theirs.classification.multiclass_matthews_corrcoef(logits, target, **unchecked),
        )
    yield (
        "torchmetrics multiclass_calibration_error",
        lambda: theirs.classification.multiclass_calibration_error(probs, target, **unchecked),
    )


def update_calls(device: torch.device) -> Iterator[tuple[str, Call]]:
    """Give `update` of every metric on its batch of 64 samples of 4 classes."""
    preds, target = (tensor.to(device) for tensor in CASES[MetaPatternConcernScore].fed.draw(64, 0))
    reference = MulticlassF1Score(preds.shape[1], average="macro").to(device)
    yield "torchmetrics MulticlassF1Score(average='macro')", lambda: reference.update(preds, target)
    for kind, case in CASES.items():
        batch = [tensor.to(device) for tensor in case.fed.draw(64, 0)]
        metric = case.make().to(device)

        def update(metric: Any = metric, batch: Sequence[Tensor] = batch) -> None:
            metric.reset()  # some hold every score
            metric.update(*batch)

        yield kind.__name__, update


def ratios(named: Sequence[tuple[str, Call]], finish: Call) -> list[tuple[str, float, float]]:
    """Return the names, milliseconds, and multiples of the first call."""
    times = medians([call for _, call in named], finish)
    return [(name, 1000 * time, time / times[0]) for (name, _), time in zip(named, times, strict=True)]


def earlier(text: str) -> dict[tuple[str, str], float]:
    """Read the ratios of a table that this module wrote, by section and name."""
    found, section = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line
        elif row := re.fullmatch(r"\| (.+?) \| [\d.]+ \| ([\d.]+)( .*)? \|", line):
            found[section, row[1].strip()] = float(row[2])
    return found


def section_of(heading: str, rows: Sequence[tuple[str, float, float]], before: dict[tuple[str, str], float]) -> str:
    """Return a table, with marks where ratios have grown beyond noise."""
    heading = f"## {heading}"
    cells = []
    for name, milliseconds, ratio in rows:
        old = before.get((heading, name))
        mark = f" (was {old:.2f})" if old is not None and ratio > NOISE * old else ""
        cells.append(
            [name, f"{milliseconds:.3g}" if milliseconds < 1000 else f"{milliseconds:.0f}", f"{ratio:.2f}{mark}"]
        )
    return f"{heading}\n\n{Table(['call', 'ms', 'ratio'], cells).markdown()}\n"


def devices() -> list[torch.device]:
    """Return the CPU, and a GPU if there is one."""
    return [torch.device("cpu"), *([torch.device("cuda")] if torch.cuda.is_available() else [])]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description="Time every family against PyTorch and torchmetrics.")
    parser.add_argument("--out", type=Path, default=TABLE)
    path = parser.parse_args().out
    before = earlier(path.read_text(encoding="utf-8")) if path.exists() else {}
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    parts = [
        "# Benchmarks\n\n```\nmake bench\n```\n\nwrites this page: milliseconds, and multiples of the first line of "
        "each table, medians of calls in turns.\n\n"
        f"{platform.machine()}, {torch.get_num_threads()} threads{gpu}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, torchmetrics {torchmetrics.__version__}.\n"
    ]
    jobs = [(device, shape, name) for device in devices() for shape in SHAPES for name in DTYPES]
    with counting_bar("bench", len(jobs) + len(devices())) as advance:
        for device, shape, name in jobs:
            generator = torch.Generator().manual_seed(0)
            logits = (3 * torch.randn(shape, generator=generator)).to(device, DTYPES[name])
            target = torch.randint(0, shape[1], shape[:1], generator=generator).to(device)
            finish: Call = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
            rows = ratios(list(batch_calls(logits, target)), finish)
            parts.append(section_of(f"{shape} {name} on {device.type}", rows, before))
            advance()
        for device in devices():
            finish = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
            parts.append(
                section_of(f"update of 64 samples on {device.type}", ratios(list(update_calls(device)), finish), before)
            )
            advance()
    path.write_text("\n".join(parts), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
