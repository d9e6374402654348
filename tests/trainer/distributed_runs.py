"""Train with 1, 2 and 4 processes, and compare the records: ``python -m tests.trainer.distributed_runs FOLDER``.

With numbers of processes after the folder, only two of the runs are made, with these.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpcs_torch.metrics.named_metrics import ENTRIES
from mpcs_torch.processes import World
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.result import read_records
from tests.processes.forked import forked_world, succeeded
from tests.trainer.toy import toy_config, toy_data

SIZES = (2, 4)
TOLERANCE = 1e-12
"""Relative, between runs in float64."""
METRICS = [
    entry.name for entry in ENTRIES if entry.takes not in ("soft_labels", "trials", "costs")
]
COUNTS = [entry.name for entry in ENTRIES if entry.is_count]
CHANGES: dict[str, dict[str, Any]] = {
    "uneven batches": {
        "training": {"batch_size": 11}
    },  # 45 samples: the last batch holds one
    "loss of weighted pairs": {
        "loss": {"name": "concern"},
        "training": {"batch_size": 20, "clip_norm": 0.5},
    },
    "scale and scheduler": {
        "training": {"batch_size": 10, "loss_scale": "mpcs_count"},
        "scheduler": {"name": "mpcs_lr"},
    },
    "average and selector": {
        "training": {
            "batch_size": 7,
            "averaging": 0.9,
            "optimizer": {"name": "sgd", "momentum": 0.9},
        },
        "selector": {"by": "mpcs", "top_k": 2},
    },
    "passes and patience": {
        "epochs": {"count": 30, "unit": "pass"},
        "training": {"batch_size": 7, "learning_rate": 0.5},
        "selector": {"by": "mpcs", "patience": 2},
    },
    "average and clipped steps": {
        "training": {"batch_size": 7, "averaging": 0.9, "clip_norm": 0.5},
        "selector": {"by": "mpcs", "top_k": 2},
    },
}
QUICK = ["loss of weighted pairs", "average and clipped steps"]


def config_of(change: str) -> RunConfig:
    epochs = {"count": 12, "every": 2, "test": ["accuracy", "mpcs"]}
    sections = {
        "epochs": epochs,
        "metrics": METRICS,
        "device": {"precision": "64-true"},
        **CHANGES[change],
    }
    return toy_config(**sections)


def difference(ours: float, theirs: float) -> float:
    if ours == theirs or (ours != ours and theirs != theirs):
        return 0.0
    return abs(ours - theirs) / max(abs(ours), abs(theirs))


def main(root: Path, changes: Sequence[str], sizes: Sequence[int]) -> None:
    for change in changes:
        config, folder = config_of(change), root / change.replace(" ", "-")
        folder.mkdir(parents=True)
        for size in (1, *sizes):

            def train(
                world: World,
                config: RunConfig = config,
                folder: Path = folder,
                size: int = size,
            ) -> None:
                run_in_folder(config, toy_data(), folder / str(size), world=world)

            assert succeeded(forked_world(folder, size, train)), (
                f"{change}: {size} processes failed"
            )
        alone = read_records(folder / "1" / "records.csv")
        for size in sizes:
            records = read_records(folder / str(size) / "records.csv")
            assert len(records) == len(alone)
            pairs = [
                (name, row[name], other[name])
                for row, other in zip(records, alone, strict=True)
                for name in row
            ]
            furthest = max(difference(ours, theirs) for _, ours, theirs in pairs)
            assert furthest <= TOLERANCE, f"{change}: {size} processes are {furthest} away"
            assert all(ours == theirs for name, ours, theirs in pairs if name in COUNTS)
            print(f"{change}: {size} processes, largest relative difference {furthest:.1e}")


if __name__ == "__main__":
    given = [int(size) for size in sys.argv[2:]]
    main(Path(sys.argv[1]), QUICK if given else list(CHANGES), given or SIZES)
