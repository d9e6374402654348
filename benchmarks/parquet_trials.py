"""Measure `mpcs detect` on 10^7 trials in parquet beside one sort: python -m benchmarks.parquet_trials.

Each runs in a process of its own, with one thread, and is timed from where torch has been imported to its end.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from benchmarks.command_cost import DETECT, MEASURED, Cost, cost

TRIALS, ROUNDS, LIMIT = 10**7, 3, 2.0
SORTED, DETECTED = "reading and one sort", "mpcs detect"
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


def quickest() -> dict[str, Cost]:
    """Return what each of four processes costs at least, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_trials(Path(folder) / "trials.parquet"))
        commands = {
            "imports": (IMPORTS, []),
            SORTED: (SORT, [path]),
            "mpcs detect --no-intervals": (
                DETECT,
                ["detect", path, "--llr", "--no-intervals"],
            ),
            DETECTED: (DETECT, ["detect", path, "--llr"]),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, (code, arguments) in commands.items():
                costs[name].append(cost(code, *arguments))
    return {
        name: min(rounds, key=lambda cost: cost.seconds) for name, rounds in costs.items()
    }


def ratio() -> float:
    """Return how many times as long as reading and one sort the command takes, intervals and all."""
    costs = quickest()
    return costs[DETECTED].seconds / costs[SORTED].seconds


def main() -> None:
    costs = quickest()
    for name, (seconds, mebibytes) in list(costs.items())[1:]:
        times, beyond = (
            seconds / costs[SORTED].seconds,
            mebibytes - costs["imports"].mebibytes,
        )
        print(
            f"{name}: {seconds:.1f} s, {times:.2f} times the sort (limit {LIMIT:g}), {beyond:.0f} MiB"
        )


if __name__ == "__main__":
    main()
