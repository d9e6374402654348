"""Peak memory and time of ``mpcs score`` by format and rows: ``python -m tests.benchmarks.score_memory``."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLASSES = 10
CODE = "import sys; from mpcs_torch.cli import main; sys.argv = ['mpcs', *sys.argv[1:]]; main()"
CHILD = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, "
CHILD += "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"


def write(folder: Path, rows: int) -> None:
    """The same random probabilities and labels as npy and csv."""
    generator = np.random.default_rng(0)
    logits = 2 * generator.normal(size=(rows, CLASSES))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) > generator.random((rows, 1))).argmax(axis=1)
    np.save(folder / "p.npy", probs)
    np.save(folder / "t.npy", labels)
    header = ",".join(["target", *(f"class_{c}" for c in range(CLASSES))])
    table = np.column_stack([labels, probs])
    np.savetxt(folder / "p.csv", table, fmt=["%d", *["%.6f"] * CLASSES], delimiter=",", header=header, comments="")


def peak(*arguments: str) -> tuple[int, float]:
    """Peak MiB and seconds of one command line."""
    start = time.perf_counter()
    command = [sys.executable, "-c", CHILD, sys.executable, "-c", CODE, *arguments]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(printed), time.perf_counter() - start


def main() -> None:
    """Print a line for each format and size, and what the bare command takes."""
    print(f"mpcs --help: {peak('--help')[0]} MiB")
    for rows in (10_000, 1_000_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, rows)
            for arguments in (["p.npy", "--target", str(folder / "t.npy")], ["p.csv"]):
                memory, seconds = peak("score", str(folder / arguments[0]), *arguments[1:])
                print(f"{rows} rows of {arguments[0]}: {memory} MiB, {seconds:.0f} s")


if __name__ == "__main__":
    main()
