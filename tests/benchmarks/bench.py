"""Time every family against PyTorch and torchmetrics: `make bench`, or ``python -m tests.benchmarks.bench``.

Ratios of medians of calls that are taken in turns, so that a noisy machine slows all of them alike. The page goes to
docs/results/benchmarks.md, with the commit that was measured.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
import torchmetrics
from torch import Tensor
from torch.nn import functional as nn_functional
from torchmetrics import functional as theirs
from torchmetrics.classification import MulticlassF1Score
from torchvision.models import resnet18

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch import functional as ours
from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.metrics import BrierScore, DangerousErrors, ExpectedConcern, GeometricAccuracy, MacroFScore
from mpcs_torch.tables import Table
from tests.benchmarks import detection_against_sort, parquet_trials, replay_overhead, training_cost
from tests.metrics.cases import CASES

Call = Callable[[], object]

SHAPES = ((64, 10), (60000, 10), (50000, 1000), (4096, 50257))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SECONDS = 0.2
"""For each call, on average; at least three rounds are taken."""
SQUARE = 2000
"""Metrics that hold a confusion matrix are timed up to this number of classes."""
MPCS_LIMIT, KERNEL_LIMIT, UPDATE_LIMIT, BUSY_LIMIT, START_LIMIT = 1.1, 1.5, 0.5, 1.5, 0.5
LARGE = 10**5
"""Numbers in a batch from which on the limits of kernels hold."""
UPDATES = 1000
STEPS, STEP_LIMIT = 100, 0.01
RUN_LIMIT, REPLAY_LIMIT, SPEEDUP = 1.5, 1.15, 1.75
ON_CPU = torch.float32, torch.device("cpu")
STARTS = (["metrics"], ["data", "list"], ["concern", "check", "traffic-lights"])
"""Commands that need no tensors."""
ROOT = Path(__file__).parents[2]
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
    concerns = {"sparse": spec.sparse_matrix(), **({"dense": spec.matrix()} if classes <= SQUARE else {})}
    settings: dict[str, Any] = {"num_classes": classes}
    unchecked = {**settings, "validate_args": False}
    mpcs, kernel = (MPCS_LIMIT, KERNEL_LIMIT) if logits.numel() >= LARGE else (None, None)
    score = ours.meta_pattern_concern_score
    yield Timed("F.cross_entropy", lambda: nn_functional.cross_entropy(logits, target))
    yield Timed("reading the logits once (amax)", lambda: logits.amax(dim=1))
    yield Timed("softmax", lambda: logits.softmax(dim=1))
    yield Timed("**MPCS from logits**", lambda: score(logits, target, **settings), mpcs)
    yield Timed("**MPCS from probabilities**", lambda: score(probs, target, **settings, from_logits=False), mpcs)
    for kind, concern in concerns.items():
        weighed = {**settings, "concern": concern}
        yield Timed(f"**MPCS from logits, {kind} concern**", lambda given=weighed: score(logits, target, **given), mpcs)
        yield Timed(
            f"**MPCS from probabilities, {kind} concern**",
            lambda given=weighed: score(probs, target, **given, from_logits=False),
            mpcs,
        )
    metric = MetaPatternConcernScore(**settings).to(logits.device)
    yield Timed("**MetaPatternConcernScore.update**", lambda: metric.update(logits, target), mpcs)
    if logits.device.type == "cpu" and logits.numel() >= LARGE and logits.dtype == torch.float32:
        compiled = torch.compile(lambda x, y: score(x, y, **settings))
        yield Timed("**MPCS from logits, compiled**", lambda: compiled(logits, target), mpcs)
    yield Timed("brier_score", lambda: ours.brier_score(logits, target, **settings), kernel)
    yield Timed(
        "brier_score, from probabilities",
        lambda: ours.brier_score(probs, target, **settings, from_logits=False),
        kernel,
    )
    yield Timed("cross_entropy", lambda: ours.cross_entropy(logits, target, **settings), kernel)
    yield Timed("geometric_accuracy", lambda: ours.geometric_accuracy(logits, target, **settings), kernel)
    if classes <= SQUARE:
        dense, dangerous = spec.costs(), spec.dangerous_pairs()
        yield Timed("probability_accuracy", lambda: ours.probability_accuracy(logits, target, **settings), kernel)
        yield Timed(
            "expected_concern", lambda: ours.expected_concern(logits, target, **settings, concern=dense), kernel
        )
        yield Timed(
            "dangerous_errors", lambda: ours.dangerous_errors(logits, target, **settings, concern=dangerous), kernel
        )
        yield Timed(
            "multiclass_quality_metrics", lambda: ours.multiclass_quality_metrics(logits, target, **settings), kernel
        )
        labels = nn_functional.one_hot(target, classes).to(probs.dtype)
        clamped = probs.clamp(0, 1)
        yield Timed("soft_f1", lambda: ours.soft_f1(clamped, labels, **settings), kernel)
    yield Timed(
        "torchmetrics multiclass_f1_score",
        lambda: theirs.classification.multiclass_f1_score(logits, target, **unchecked),
    )
    yield Timed(
        "torchmetrics multiclass_calibration_error",
        lambda: theirs.classification.multiclass_calibration_error(probs.float(), target, **unchecked),
    )


def update_calls(device: torch.device) -> Iterator[Timed]:
    """Give many updates of every metric with a batch of 64 samples, and a look at its states."""
    logits, target = torch.randn(64, 10, device=device), torch.randint(0, 10, (64,), device=device)
    reference = MulticlassF1Score(10, average="macro").to(device)
    yield Timed("torchmetrics MulticlassF1Score(average='macro')", _updates(reference, (logits, target)))
    for kind, case in CASES.items():
        batch = [tensor.to(device) for tensor in case.fed.draw(64, 0)]
        yield Timed(kind.__name__, _updates(case.make().to(device), batch), UPDATE_LIMIT)


def _updates(metric: torchmetrics.Metric, batch: Sequence[Tensor]) -> Call:
    def update() -> object:
        metric.reset()  # some hold every score
        for _ in range(UPDATES):
            metric.update(*batch)
        return metric.metric_state

    return update


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep this number of cores busy meanwhile."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def threads_table() -> str:
    """Time MPCS with several numbers of threads, also beside busy processes."""
    most, rows = torch.get_num_threads(), []
    for shape in SHAPES[1:3]:
        logits, target = batch(shape, torch.float32, torch.device("cpu"))
        score = lambda: ours.meta_pattern_concern_score(logits, target, num_classes=shape[1])  # noqa: B023, E731
        reference = lambda: nn_functional.cross_entropy(logits, target)  # noqa: B023, E731
        for others in (0, 2):
            with busy_processes(others):
                for threads in (1, 2, 4, 8):
                    torch.set_num_threads(threads)
                    first, second = medians([reference, score], lambda: None)
                    limit = BUSY_LIMIT if others else MPCS_LIMIT if threads <= 2 else None
                    ratio = second / first
                    rows.append(
                        [
                            f"{shape}",
                            f"{others}",
                            f"{threads}",
                            f"{1000 * first:.3g}",
                            f"{ratio:.2f}",
                            _at_most(limit, ratio),
                        ]
                    )
    torch.set_num_threads(most)
    header = ["float32 logits", "busy processes beside", "threads", "F.cross_entropy, ms", "MPCS, ratio", "at most"]
    return f"## MPCS by threads, and beside others\n\n{Table(header, rows).markdown()}\n"


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
print(sys.argv[1], resident("VmHWM") - before, sep=",")
"""
"""Prints the MiB that a call takes beyond its input."""
MEASURED = ("F.cross_entropy", "MPCS from logits", "brier_score", "dangerous_errors", "probability_accuracy")


def memory_table() -> str:
    """Measure the memory that calls take beyond their input, each in processes of their own; the median of three."""
    rows = []
    for name in MEASURED:
        call = [sys.executable, "-c", MEMORY, name]
        runs = [subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT).stdout for _ in range(3)]
        rows.append([name, f"{median(float(printed.rpartition(',')[2]) for printed in runs):.0f}"])
    header = ["call", "MiB beyond the 191 MiB of the logits"]
    return f"## Memory at (50000, 1000) float32\n\n{Table(header, rows).markdown()}\n"


def starts_table() -> str:
    """Time commands that need no tensors, from start to end."""
    rows = []
    for arguments in STARTS:
        seconds = []
        for _ in range(5):
            start = perf_counter()
            subprocess.run([sys.executable, "-m", "mpcs_torch", *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds.append(perf_counter() - start)
        rows.append([f"mpcs {' '.join(arguments)}", f"{median(seconds):.2f}", f"{START_LIMIT}"])
    return f"## Commands\n\n{Table(['command', 'seconds', 'at most'], rows).markdown()}\n"


def detection_table() -> str:
    """Time what detectors need of 10^7 trials, as multiples of one sort."""
    of_tensors, of_file = detection_against_sort.ratio(), parquet_trials.ratio()
    kinds = [
        ("equal error, costs, area, Cllr", "a sort and a pass of PAV", of_tensors, detection_against_sort.LIMIT),
        ("mpcs detect of a parquet file", "reading and a sort", of_file, parquet_trials.LIMIT),
    ]
    cells = [[call, base, f"{ratio:.2f}", _at_most(limit, ratio)] for call, base, ratio, limit in kinds]
    return f"## Detection, 10^7 trials\n\n{Table(['call', 'in multiples of', 'ratio', 'at most'], cells).markdown()}\n"


def step_table() -> str:
    """Time six metrics beside a training step: an update with its share of one compute for each 100 steps."""
    model, images, (_, target) = resnet18(num_classes=10), torch.randn(64, 3, 224, 224), batch((64, 10), *ON_CPU)
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
    row = [f"{of_step:.2f} s", f"{1000 * of_metrics / STEPS:.3f} ms", f"{100 * share:.4f} %", f"{100 * STEP_LIMIT:g} %"]
    header = ["step of ResNet-18, 64 images of 224 x 224", "six metrics", "share", "at most"]
    return f"## Metrics in a training step\n\n{Table(header, [row]).markdown()}\n"


def training_table() -> str:
    """Time runs against bare loops of their steps; those on published data where there is some."""
    timed = [
        (f"{training_cost.TASK}, {method}", "its steps in a bare loop", training_cost.run_ratio(method), RUN_LIMIT)
        for method in training_cost.METHODS
    ]
    if root := os.environ.get("MPCS_DATA_ROOT"):
        for name in replay_overhead.TURNS:
            measured = replay_overhead.ratio(name, Path(root))
            timed.append((f"replay of {name}", "its steps and forward passes", measured, REPLAY_LIMIT))
    for size in training_cost.BATCHES:
        ours, bare = training_cost.two_processes(size)
        timed.append((f"CNN, batches of {size}, two processes", "one process", ours, 1 / SPEEDUP))
        timed.append(("the same in a bare loop of PyTorch's", "one process", bare, None))
    cells = [[what, base, f"{ratio:.2f}", _at_most(limit, ratio)] for what, base, ratio, limit in timed]
    return f"## Training\n\n{Table(['run', 'in multiples of', 'ratio', 'at most'], cells).markdown()}\n"


def batch(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
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
    return f"## {heading}\n\n{Table(['call', 'ms', 'ratio', 'at most'], cells).markdown()}\n"


def _at_most(limit: float | None, ratio: float) -> str:
    return "" if limit is None else f"{limit:.3g}" + (" **exceeded**" if ratio > limit else "")


def devices() -> list[torch.device]:
    """Return the CPU, and a GPU if there is one."""
    return [torch.device("cpu"), *([torch.device("cuda")] if torch.cuda.is_available() else [])]


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Time every family against PyTorch and torchmetrics.")
    parser.add_argument("--out", type=Path, default=TABLE)
    path = parser.parse_args().out
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    parts = [
        "# Benchmarks\n\n```\nmake bench\n```\n\nwrites this page: milliseconds, and multiples of the first line of "
        "each table, medians of calls in turns.\n\n"
        f"{platform.machine()}, {torch.get_num_threads()} threads{gpu}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, torchmetrics {torchmetrics.__version__}; load {os.getloadavg()[0]:.1f} at the "
        f"start; commit {commit.strip() or 'unknown'}.\n"
    ]
    jobs = [(device, shape, name) for device in devices() for shape in SHAPES for name in DTYPES]
    with counting_bar("bench", len(jobs) + len(devices()) + 6) as advance:
        for device, shape, name in jobs:
            finish: Call = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
            timed = list(batch_calls(*batch(shape, DTYPES[name], device)))
            parts.append(table_of(f"{shape} {name} on {device.type}", timed, finish))
            advance()
        for device in devices():
            finish = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
            heading = f"{UPDATES} updates of 64 samples on {device.type}"
            parts.append(table_of(heading, list(update_calls(device)), finish))
            advance()
        for table in (threads_table, memory_table, detection_table, step_table, training_table, starts_table):
            parts.append(table())
            advance()
    path.write_text("\n".join(parts), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
