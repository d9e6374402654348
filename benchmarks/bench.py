"""Time every family against PyTorch and torchmetrics: `make bench`, or ``python -m benchmarks.bench``.

Ratios of medians of calls that are taken in turns, so that a noisy machine slows all of them alike. The page goes to
docs/results/benchmarks.md, with the commit that was measured.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
import torchmetrics
from torch import Tensor
from torch.nn import functional as nn_functional
from torchmetrics import MetricCollection
from torchmetrics import functional as theirs
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score
from torchvision.models import resnet18

from benchmarks import (
    detection_against_sort,
    parquet_trials,
    replay_overhead,
    training_cost,
)
from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch import functional as ours
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.metrics import (
    Accuracy,
    BrierScore,
    DangerousErrors,
    ExpectedConcern,
    GeometricAccuracy,
    MacroF1,
    MacroFScore,
)
from mpcs_torch.tables import Table

Call = Callable[[], object]

SHAPES = ((64, 10), (60000, 10), (50000, 1000), (4096, 50257))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SECONDS = 0.2
"""For each call, on average; at least three rounds are taken."""
SQUARE = 2000
"""Metrics that hold a confusion matrix are timed up to this number of classes."""
LIMITS = {(60000, 10): 3.0, (50000, 1000): 1.5, (4096, 50257): 1.5}
"""Of MPCS in float32, in multiples of the cross entropy, by shape of the logits."""
WITH_CONCERN, HALF_LIMIT, THREADS_LIMIT, MEMORY_LIMIT, START_LIMIT = 1.5, 2.5, 1.2, 100, 0.5
"""With a concern MPCS may take this much longer; two threads may take this many times the multiple of one."""
BATCHES = {(64, 10): 300, (256, 1000): 30}
"""Shapes of small batches, and how many updates are timed at once."""
UPDATES = {
    "Accuracy": ("accuracy", 1.2),
    "MacroF1": ("F1", 1.2),
    "BrierScore": ("F1", 2.0),
    "DangerousErrors": ("F1", 2.0),
    "MetaPatternConcernScore": ("F1", 3.0),
}
"""The metric of torchmetrics that each of ours is compared with, and in multiples of it, the limit of an update."""
STEPS, STEP_LIMIT = 100, 0.001
ON_CPU = torch.float32, torch.device("cpu")
STARTS = (["--help"], ["data", "list"], ["concern", "check", "traffic-lights"])
"""Commands that need no tensors."""
ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "results" / "benchmarks.md"


class Timed(NamedTuple):
    """A call, and how many times as long as the first one of its table it may take."""

    name: str
    call: Call
    limit: float | None = None


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


def batch_calls(logits: Tensor, target: Tensor) -> Iterator[Timed]:
    """Give the calls for a batch; the first is what they are compared with."""
    classes = logits.shape[1]
    probs = logits.softmax(dim=1)
    spec = ConcernSpec(classes, releases=[[i, (i + 1) % 10] for i in range(10)])
    concerns = {"sparse": spec.sparse_matrix()}
    if classes <= SQUARE:
        concerns["dense"] = spec.mpcs_weights()
    settings: dict[str, Any] = {"num_classes": classes}
    unchecked = {**settings, "validate_args": False}
    limit = weighted = None
    if (len(logits), classes) in LIMITS:
        is_half = logits.element_size() == 2
        limit = HALF_LIMIT if is_half else LIMITS[len(logits), classes]
        weighted = WITH_CONCERN * limit
    score = ours.meta_pattern_concern_score
    yield Timed("F.cross_entropy", lambda: nn_functional.cross_entropy(logits, target))
    yield Timed("reading the logits once (amax)", lambda: logits.amax(dim=1))
    yield Timed("softmax", lambda: logits.softmax(dim=1))
    yield Timed("**MPCS from logits**", lambda: score(logits, target, **settings), limit)
    yield Timed(
        "**MPCS from probabilities**",
        lambda: score(probs, target, **settings, from_logits=False),
        limit,
    )
    for kind, concern in concerns.items():
        weighed = {**settings, "concern": concern}
        yield Timed(
            f"**MPCS from logits, {kind} concern**",
            lambda given=weighed: score(logits, target, **given),
            weighted,
        )
        yield Timed(
            f"**MPCS from probabilities, {kind} concern**",
            lambda given=weighed: score(probs, target, **given, from_logits=False),
            weighted,
        )
    yield Timed("brier_score", lambda: ours.brier_score(logits, target, **settings))
    yield Timed(
        "brier_score, from probabilities",
        lambda: ours.brier_score(probs, target, **settings, from_logits=False),
    )
    yield Timed("cross_entropy", lambda: ours.cross_entropy(logits, target, **settings))
    yield Timed(
        "geometric_accuracy", lambda: ours.geometric_accuracy(logits, target, **settings)
    )
    if classes <= SQUARE:
        yield from matrix_calls(logits, target, spec)
    yield Timed(
        "torchmetrics multiclass_f1_score",
        lambda: theirs.classification.multiclass_f1_score(logits, target, **unchecked),
    )
    yield Timed(
        "torchmetrics multiclass_calibration_error",
        lambda: theirs.classification.multiclass_calibration_error(
            probs.float(), target, **unchecked
        ),
    )


def matrix_calls(logits: Tensor, target: Tensor, spec: ConcernSpec) -> Iterator[Timed]:
    """Give the calls whose time or memory grows with the square of the classes, or with one-hot labels."""
    settings: dict[str, Any] = {"num_classes": logits.shape[1]}
    dense, dangerous = spec.costs(), spec.dangerous_pairs()
    yield Timed(
        "probability_accuracy",
        lambda: ours.probability_accuracy(logits, target, **settings),
    )
    yield Timed(
        "expected_concern",
        lambda: ours.expected_concern(logits, target, **settings, concern=dense),
    )
    yield Timed(
        "dangerous_errors",
        lambda: ours.dangerous_errors(logits, target, **settings, concern=dangerous),
    )
    yield Timed(
        "multiclass_quality_metrics",
        lambda: ours.multiclass_quality_metrics(logits, target, **settings),
    )
    probs = logits.softmax(dim=1).clamp(0, 1)
    labels = nn_functional.one_hot(target, logits.shape[1]).to(probs.dtype)
    yield Timed("soft_f1", lambda: ours.soft_f1(probs, labels, **settings))


def updates_table() -> str:
    """Time small batches in metrics beside those of torchmetrics that do the same or most like it."""
    rows = []
    for shape, number in BATCHES.items():
        samples, classes = batch(shape, *ON_CPU), shape[1]
        metrics: dict[str, torchmetrics.Metric] = {
            "accuracy": MulticlassAccuracy(classes, average="micro"),
            "F1": MulticlassF1Score(classes),
            "Accuracy": Accuracy(classes),
            "MacroF1": MacroF1(classes),
            "BrierScore": BrierScore(classes),
            "DangerousErrors": DangerousErrors(classes),
            "MetaPatternConcernScore": MetaPatternConcernScore(classes),
        }
        for kind in ("update", "forward", "update and compute"):
            calls = [_batches(each, samples, kind, number) for each in metrics.values()]
            times = dict(zip(metrics, medians(calls, lambda: None), strict=True))
            for name, (reference, limit) in UPDATES.items():
                ratio = times[name] / times[reference]
                rows.append(
                    [
                        f"{shape}",
                        kind,
                        name,
                        f"{1e6 * times[name] / number:.0f}",
                        reference,
                        f"{ratio:.2f}",
                        _at_most(limit, ratio),
                    ]
                )
    header = [
        "logits",
        "call",
        "metric",
        "us",
        "in multiples of torchmetrics'",
        "ratio",
        "at most",
    ]
    return f"## Small batches\n\n{Table(header, rows).markdown()}\n{_collections()}"


def _batches(
    metric: torchmetrics.Metric, given: tuple[Tensor, Tensor], kind: str, number: int
) -> Call:
    def run() -> None:
        metric.reset()
        for _ in range(number):
            if kind == "forward":
                metric(*given)
            else:
                metric.update(*given)
            if kind == "update and compute":
                metric.compute()
                metric.reset()

    return run


def _collections() -> str:
    """Time updates of five metrics in a collection with compute groups, as by default, and without."""
    samples = batch((64, 10), *ON_CPU)
    kinds = (Accuracy, MacroF1, BrierScore, DangerousErrors, MetaPatternConcernScore)
    collections = [
        MetricCollection([kind(10) for kind in kinds], compute_groups=grouped)
        for grouped in (False, True)
    ]
    calls = [_batches(each, samples, "update", 300) for each in collections]
    alone, grouped = medians(calls, lambda: None)
    return (
        f"\nUpdating a collection of these five metrics takes {grouped / alone:.2f} times as long with compute groups "
        "as without (at most 1.2).\n"
    )


def threads_table() -> str:
    """Time MPCS with one and two threads."""
    before, rows = torch.get_num_threads(), []
    for shape in SHAPES[1:]:
        given = batch(shape, *ON_CPU)
        calls = [
            lambda given=given: nn_functional.cross_entropy(*given),
            lambda given=given, classes=shape[1]: ours.meta_pattern_concern_score(
                *given, num_classes=classes
            ),
        ]
        multiples = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            first, second = medians(calls, lambda: None)
            multiples.append(second / first)
        change = multiples[1] / multiples[0]
        rows.append(
            [
                f"{shape}",
                *(f"{each:.2f}" for each in multiples),
                f"{change:.2f}",
                _at_most(THREADS_LIMIT, change),
            ]
        )
    torch.set_num_threads(before)
    header = ["float32 logits", "one thread", "two threads", "change", "at most"]
    return f"## MPCS by threads, in multiples of F.cross_entropy\n\n{Table(header, rows).markdown()}\n"


MEMORY = """
import sys, torch
from torch.nn import functional
from mpcs_torch import functional as ours
logits, target = 3 * torch.randn(50000, 1000), torch.randint(0, 1000, (50000,))
torch.randn(1000, 1000).softmax(1)
calls = {
    "F.cross_entropy": lambda: functional.cross_entropy(logits, target),
    "MPCS from logits": lambda: ours.meta_pattern_concern_score(logits, target, num_classes=1000),
    "brier_score": lambda: ours.brier_score(logits, target, num_classes=1000),
    "dangerous_errors": lambda: ours.dangerous_errors(logits, target, num_classes=1000),
    "probability_accuracy": lambda: ours.probability_accuracy(logits, target, num_classes=1000),
}
def resident(field):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(field))) / 1024
open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
calls[sys.argv[1]]()
print(resident("VmHWM") - before)
"""
"""Prints the MiB that a call takes beyond its input."""
MEASURED = {
    "F.cross_entropy": None,
    "MPCS from logits": MEMORY_LIMIT,
    "brier_score": None,
    "dangerous_errors": None,
    "probability_accuracy": None,
}
"""The calls of `MEMORY`, and how many MiB each may take."""


def memory_table() -> str:
    """Measure the memory that calls take beyond their input, each in processes of their own; the median of three."""
    rows = []
    for name, limit in MEASURED.items():
        call = [sys.executable, "-c", MEMORY, name]
        runs = [
            subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT)
            for _ in range(3)
        ]
        beyond = median(float(run.stdout) for run in runs)
        rows.append([name, f"{beyond:.0f}", _at_most(limit, beyond)])
    header = ["call", "MiB beyond the 191 MiB of the logits", "at most"]
    return f"## Memory at (50000, 1000) float32\n\n{Table(header, rows).markdown()}\n"


def starts_table() -> str:
    """Time commands that need no tensors, from start to end."""
    rows = []
    for arguments in STARTS:
        seconds = []
        for _ in range(5):
            start = perf_counter()
            subprocess.run(
                [sys.executable, "-m", "mpcs_torch", *arguments],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            seconds.append(perf_counter() - start)
        rows.append(
            [f"mpcs {' '.join(arguments)}", f"{median(seconds):.2f}", f"{START_LIMIT}"]
        )
    return f"## Commands\n\n{Table(['command', 'seconds', 'at most'], rows).markdown()}\n"


def detection_table() -> str:
    """Time what detectors need of 10^7 trials, as multiples of one sort."""
    of_tensors, of_file = detection_against_sort.ratio(), parquet_trials.ratio()
    rows = [
        _ratio_row(
            "equal error, costs, area, Cllr",
            "a sort and a pass of PAV",
            of_tensors,
            detection_against_sort.LIMIT,
        ),
        _ratio_row(
            "mpcs detect of a parquet file",
            "reading and a sort",
            of_file,
            parquet_trials.LIMIT,
        ),
    ]
    return f"## Detection, 10^7 trials\n\n{Table(['call', *RATIO], rows).markdown()}\n"


def step_table() -> str:
    """Time six metrics beside a training step: an update with its share of one compute for each 100 steps."""
    model = resnet18(num_classes=10)
    images = torch.randn(64, 3, 224, 224)
    _, target = batch((64, 10), *ON_CPU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metrics = [
        MetaPatternConcernScore(10),
        DangerousErrors(10),
        ExpectedConcern(10, concern=ConcernSpec(10)),
        BrierScore(10),
        GeometricAccuracy(10),
        MacroFScore(10),
    ]

    def step() -> Tensor:
        optimizer.zero_grad()
        logits: Tensor = model(images)
        nn_functional.cross_entropy(logits, target).backward()
        optimizer.step()
        return logits.detach()

    logits = step()

    def measure() -> None:
        for metric in metrics:
            metric.reset()
            for _ in range(STEPS):
                metric.update(logits, target)
            metric.compute()

    of_step, of_metrics = medians([step, measure], lambda: None)
    share = of_metrics / STEPS / of_step
    row = [
        f"{of_step:.2f} s",
        f"{1000 * of_metrics / STEPS:.3f} ms",
        f"{100 * share:.4f} %",
        f"{100 * STEP_LIMIT:g} %",
    ]
    header = [
        "step of ResNet-18, 64 images of 224 x 224",
        "six metrics",
        "share",
        "at most",
    ]
    return f"## Metrics in a training step\n\n{Table(header, [row]).markdown()}\n"


def training_table() -> str:
    """Time runs against bare loops of their steps; those on published data where there is some."""
    rows = []
    for loss in training_cost.LOSSES:
        run = f"{training_cost.TASK}, {loss}, many at once"
        rows.append(_ratio_row(run, "a bare loop", training_cost.batch_ratio(loss)))
    root = os.environ.get("MPCS_DATA_ROOT")
    if root:
        for name, limit in replay_overhead.LIMITS.items():
            ratio = replay_overhead.ratio(name, Path(root))
            base = "its steps and forward passes"
            rows.append(_ratio_row(f"replay of {name}", base, ratio, limit))
    for size in training_cost.BATCHES:
        ours, bare = training_cost.two_processes(size)
        run = f"CNN, batches of {size}, two processes"
        rows.append(_ratio_row(run, "one process", ours))
        run = "the same in a bare loop of PyTorch's"
        rows.append(_ratio_row(run, "one process", bare))
    return f"## Training\n\n{Table(['run', *RATIO], rows).markdown()}\n"


RATIO = ("in multiples of", "ratio", "at most")
"""The columns of `_ratio_row` after the first."""


def _ratio_row(name: str, base: str, ratio: float, limit: float | None = None) -> list[str]:
    return [name, base, f"{ratio:.2f}", _at_most(limit, ratio)]


def batch(
    shape: tuple[int, int], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return random logits and labels."""
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(shape, generator=generator)).to(device, dtype)
    return logits, torch.randint(0, shape[1], shape[:1], generator=generator).to(device)


def table_of(heading: str, timed: Sequence[Timed], finish: Call) -> str:
    """Time calls, and return a table with multiples of the first."""
    times = medians([call for _, call, _ in timed], finish)
    cells = []
    for (name, _, limit), time in zip(timed, times, strict=True):
        ratio = time / times[0]
        milliseconds = f"{1000 * time:.3g}" if time < 1 else f"{1000 * time:.0f}"
        cells.append([name, milliseconds, f"{ratio:.2f}", _at_most(limit, ratio)])
    return (
        f"## {heading}\n\n{Table(['call', 'ms', 'ratio', 'at most'], cells).markdown()}\n"
    )


def _at_most(limit: float | None, ratio: float) -> str:
    if limit is None:
        return ""
    return f"{limit:.3g}" + (" **exceeded**" if ratio > limit else "")


def devices() -> list[torch.device]:
    """Return the CPU, and a GPU if there is one."""
    found = [torch.device("cpu")]
    if torch.cuda.is_available():
        found.append(torch.device("cuda"))
    return found


TABLES = (
    updates_table,
    threads_table,
    memory_table,
    detection_table,
    step_table,
    training_table,
    starts_table,
)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(
        description="Time every family against PyTorch and torchmetrics."
    )
    parser.add_argument("--out", type=Path, default=TABLE)
    path = parser.parse_args().out
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    parts = [
        "# Benchmarks\n\n```\nmake bench\n```\n\nThis command writes this page. Times are medians. The calls of a "
        "table are timed in turns, so noise slows all alike.\nA ratio is the time of a call divided by the time of the "
        "first call of its table, or of the work that the table names.\n"
        '"At most" is our limit.\n\n'
        f"Measured on {platform.machine()}, {torch.get_num_threads()} threads{gpu}, "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}, torchmetrics {torchmetrics.__version__};\n"
        f"load {os.getloadavg()[0]:.1f} at the start; commit {commit.strip() or 'unknown'}.\n"
    ]
    jobs = [
        (device, shape, name) for device in devices() for shape in SHAPES for name in DTYPES
    ]
    with counting_bar("bench", len(jobs) + len(TABLES)) as advance:
        for device, shape, name in jobs:
            finish: Call = (
                torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
            )
            timed = list(batch_calls(*batch(shape, DTYPES[name], device)))
            parts.append(table_of(f"{shape} {name} on {device.type}", timed, finish))
            advance()
        for table in TABLES:
            parts.append(table())
            advance()
    path.write_text("\n".join(parts), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
