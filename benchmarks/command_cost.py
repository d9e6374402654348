"""Measure time and memory of commands on files beyond their imports: python -m benchmarks.command_cost.

Every command runs in a process of its own, with one thread, and is timed from where torch (for ``mpcs score`` also
torchmetrics) has been imported to its end. The quickest of some rounds of each, taken in turns.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

CLASSES, ROUNDS = 10, 5
SCORE_LIMIT, CSV_LIMIT, DETECT_LIMIT = 3.0, 2.0, 10.0
MEASURED = """
import sys
from time import perf_counter
import torch
{imports}
def main():
{body}
start = perf_counter()
try:
    main()
finally:
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(perf_counter() - start, int(peak) / 1024, file=open(sys.argv[1], "w"))
"""
COMMAND = "    from mpcs_torch.cli.app import run_app; run_app(sys.argv[2:])"
SCORE = MEASURED.format(imports="import torchmetrics", body=COMMAND)
DETECT = MEASURED.format(imports="", body=COMMAND)
IMPORTS = MEASURED.format(imports="import torchmetrics", body="    pass")
SKLEARN = MEASURED.format(
    imports="""
import numpy as np
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef
held = np.load(sys.argv[2])
probs, labels = held["preds"], held["target"]
""",
    body="""
    given = labels, probs.argmax(axis=1)
    accuracy_score(*given), f1_score(*given, average="macro"), matthews_corrcoef(*given), confusion_matrix(*given)
""",
)
PYARROW = MEASURED.format(
    imports="", body="    from pyarrow import csv; csv.read_csv(sys.argv[2])"
)


class Cost(NamedTuple):
    """The seconds and memory of a process."""

    seconds: float
    """Without the imports of torch and torchmetrics."""
    mebibytes: float
    """At its peak, with all imports."""


def cost(code: str, *arguments: object) -> Cost:
    """Run a process and return its cost."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    with tempfile.NamedTemporaryFile("r") as found:
        command = [sys.executable, "-c", code, found.name, *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            cwd=Path(__file__).parents[1],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return Cost(*map(float, found.read().split()))


def quickest(calls: Sequence[Callable[[], Cost]]) -> list[float]:
    """Return the seconds of the quickest of `ROUNDS` rounds of each call, taken in turns."""
    rounds = [[call().seconds for call in calls] for _ in range(ROUNDS)]
    return [min(seconds) for seconds in zip(*rounds, strict=True)]


def score_ratio(folder: Path) -> float:
    """``mpcs score`` of 10^6 rows of 10 classes in npz, over scikit-learn's accuracy, macro F1, MCC and confusion."""
    path = write_predictions(folder, 10**6, ".npz")
    ours, theirs = quickest(
        [lambda: cost(SCORE, "score", path), lambda: cost(SKLEARN, path)]
    )
    return ours / theirs


def csv_ratio(folder: Path) -> float:
    """The extra time of ``mpcs score`` of 200 000 rows for csv over npz, in multiples of pyarrow's reading."""
    csv = write_predictions(folder, 200_000, ".csv")
    npz = write_predictions(folder, 200_000, ".npz")
    of_csv, of_npz, theirs = quickest(
        [
            lambda: cost(SCORE, "score", csv),
            lambda: cost(SCORE, "score", npz),
            lambda: cost(PYARROW, csv),
        ]
    )
    return (of_csv - of_npz) / theirs


def detect_seconds(folder: Path) -> float:
    """``mpcs detect`` of 10^6 trials in csv, with intervals."""
    path = write_trials(folder, 10**6)
    (seconds,) = quickest([lambda: cost(DETECT, "detect", path)])
    return seconds


def write_predictions(folder: Path, rows: int, suffix: str) -> Path:
    """Write random probabilities and labels."""
    generator = np.random.default_rng(0)
    powers = np.exp(2 * generator.normal(size=(rows, CLASSES)))
    probs = powers / powers.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) > generator.random((rows, 1))).argmax(axis=1)
    path = folder / f"p{rows}{suffix}"
    if suffix == ".npz":
        np.savez(path, preds=probs, target=labels)
    else:
        _save_csv(
            path, ["target", *map(str, range(CLASSES))], np.column_stack([labels, probs])
        )
    return path


def write_trials(folder: Path, rows: int) -> Path:
    """Write random scores and labels of trials, a tenth of them targets."""
    generator = np.random.default_rng(0)
    labels = generator.random(rows) < 0.1
    path = folder / f"s{rows}.csv"
    _save_csv(
        path,
        ["label", "score"],
        np.column_stack([labels, generator.normal(size=rows) + 2 * labels]),
    )
    return path


def _save_csv(path: Path, names: list[str], table: np.ndarray) -> None:
    formats = ["%d", *["%.6f"] * (len(names) - 1)]
    np.savetxt(path, table, fmt=formats, delimiter=",", header=",".join(names), comments="")


def main() -> None:
    """Print the ratios with their limits, and the peak memory by rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(
            f"mpcs score, npz: {score_ratio(folder):.2f} times scikit-learn (limit {SCORE_LIMIT})"
        )
        print(
            f"mpcs score, csv: {csv_ratio(folder):.2f} times pyarrow on top (limit {CSV_LIMIT})"
        )
        print(f"mpcs detect, csv: {detect_seconds(folder):.1f} s (limit {DETECT_LIMIT})")
        print(f"peak of importing torchmetrics: {cost(IMPORTS).mebibytes:.0f} MiB")
        for rows in (10**5, 10**6):
            of_npz = cost(SCORE, "score", write_predictions(folder, rows, ".npz"))
            of_csv = cost(SCORE, "score", write_predictions(folder, rows, ".csv"))
            of_trials = cost(DETECT, "detect", write_trials(folder, rows))
            peaks = f"npz {of_npz.mebibytes:.0f}, csv {of_csv.mebibytes:.0f}, trials {of_trials.mebibytes:.0f} MiB"
            print(f"peak for {rows} rows: {peaks}")


if __name__ == "__main__":
    main()
