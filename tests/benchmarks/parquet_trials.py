"""Measure `mpcs detect` on 10^7 trials in parquet beside one sort: python -m tests.benchmarks.parquet_trials.

Each runs in a process of its own, with one thread, and is timed from where torch has been imported to its end.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from tests.benchmarks.command_cost import DETECT, MEASURED, Cost, cost

TRIALS, ROUNDS = 10**7, 3
SORT = MEASURED.format(
    imports="from pyarrow import parquet",
    body="""
    table = parquet.read_table(sys.argv[2], columns=["score"])
    torch.from_numpy(table["score"].to_numpy().copy()).sort()
""",
)
IMPORTS = MEASURED.format(imports="", body="    pass")


def write_trials(path: Path) -> Path:
    """Write trials of which every tenth is a target."""
    generator = np.random.default_rng(0)
    labels = (np.arange(TRIALS) % 10 == 0).astype(np.int8)
    scores = generator.normal(size=TRIALS) + 2.0 * labels
    parquet.write_table(pyarrow.table({"score": scores, "label": labels}), path)
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_trials(Path(folder) / "trials.parquet"))
        commands = {
            "imports": (IMPORTS, []),
            "reading and one sort": (SORT, [path]),
            "mpcs detect, no bootstrap": (DETECT, ["detect", path, "--llr", "--no-intervals"]),
            "mpcs detect": (DETECT, ["detect", path, "--llr"]),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, (code, arguments) in commands.items():
                costs[name].append(cost(code, *arguments))
        quickest = {name: min(held, key=lambda each: each.seconds) for name, held in costs.items()}
        base = quickest["imports"].mebibytes
        for name in list(commands)[1:]:
            seconds, mebibytes = quickest[name]
            times = seconds / quickest["reading and one sort"].seconds
            print(f"{name}: {seconds:.1f} s, {times:.2f} times the sort, {mebibytes - base:.0f} MiB")


if __name__ == "__main__":
    main()
