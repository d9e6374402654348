"""Seconds and peak memory of starting: ``python -m benchmarks.start_up``."""

import statistics
import subprocess
import sys

from mpcs_torch.cli.app import VERBS

SECONDS, MEBIBYTES = 0.5, 80
"""The most that help may take."""
HELP = [
    [],
    *([verb] for verb in VERBS),
    ["data", "get"],
    ["data", "list"],
    ["concern", "check"],
    ["concern", "suggest"],
    ["calibrate", "fit"],
    ["calibrate", "apply"],
    ["calibrate", "priors"],
    ["decide", "fit"],
    ["decide", "apply"],
]
CHILD = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def cost(*arguments: str) -> tuple[float, float]:
    """Return seconds and peak MiB of ``python ARGUMENTS``, the medians of five runs."""
    command = [sys.executable, "-c", CHILD, sys.executable, *arguments]
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        for _ in range(5)
    ]
    seconds = statistics.median(float(printed) for printed, _ in runs)
    mebibytes = statistics.median(float(printed) for _, printed in runs)
    return seconds, mebibytes


def main() -> None:
    """Print a line for each way to start."""
    starts = {
        "python": ["-c", ""],
        "mpcs --help": ["-m", "mpcs_torch", "--help"],
        "import mpcs_torch": ["-c", "import mpcs_torch"],
        "from mpcs_torch import *": ["-c", "from mpcs_torch import *"],
        "import torchmetrics": ["-c", "import torchmetrics"],
        "import torch": ["-c", "import torch"],
        "parts for a loop": [
            "-c",
            "from mpcs_torch.learning import CheckpointSelector, MPCSLR, SoftmaxMarginLoss",
        ],
    }
    for name, arguments in starts.items():
        seconds, mebibytes = cost(*arguments)
        print(f"{name}: {seconds:.2f} s, {mebibytes:.0f} MiB")


if __name__ == "__main__":
    main()
