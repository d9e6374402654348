"""Time a run of two processes beside the same run of one, with one thread each: how much quicker is it?

Run: MPCS_DATA_ROOT=data python -m tests.benchmarks.two_processes
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from mpcs_torch.paper.experiments import experiment_config
from mpcs_torch.processes.world import World
from mpcs_torch.trainer.prepare import prepare_run
from tests.processes.forked import forked_world, succeeded

SETTINGS = (
    "model.hidden=1024",
    "training.batch_size=4096",
    "epochs.every=15",
    "epochs.count=4",
    "epochs.test=[]",
    "selector=null",
)
ROUNDS = 5


def seconds(size: int, settings: Sequence[str], data_root: Path, folder: Path) -> float:
    """Return the seconds that training takes, data loaded and processes met."""
    config = experiment_config("case-study", settings)

    def train(world: World) -> None:
        torch.set_num_threads(1)
        run = prepare_run(config, config.data.load(data_root), world)
        world.told_by_all(None)  # all are ready
        start = perf_counter()
        run.start()
        if world.is_first:
            (folder / "seconds").write_text(str(perf_counter() - start))

    assert succeeded(forked_world(folder, size, train))
    return float((folder / "seconds").read_text())


if __name__ == "__main__":
    root = Path(os.environ.get("MPCS_DATA_ROOT", "data"))
    with tempfile.TemporaryDirectory() as temporary:
        pairs = [[seconds(size, SETTINGS, root, Path(temporary)) for size in (1, 2)] for _ in range(ROUNDS)]
    ratios = ", ".join(f"{one / two:.2f}" for one, two in pairs)
    print(f"two processes are {median(one / two for one, two in pairs):.2f} times as quick as one ({ratios})")
