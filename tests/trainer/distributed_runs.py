"""Train with one and with several processes, and compare: ``python -m tests.trainer.distributed_runs FOLDER SIZE``."""

import sys
from pathlib import Path
from typing import Any

from mpcs_torch.metrics.named_metrics import ENTRIES
from mpcs_torch.processes import World
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.result import Record, read_records
from tests.processes.forked import forked_world, succeeded
from tests.trainer.toy import toy_config, toy_data

TOLERANCE = 1e-12
"""Relative, between runs in float64."""
METRICS = [
    entry.name for entry in ENTRIES if entry.takes not in ("soft_labels", "trials", "costs")
]
COUNTS = {entry.name for entry in ENTRIES if entry.is_count}
RUNS: dict[str, dict[str, Any]] = {
    "weighted pairs and uneven batches": {
        "epochs": {"count": 12, "every": 2, "test": ["accuracy", "mpcs"]},
        "loss": {"name": "concern"},
        # Of 45 samples, the last batch holds one.
        "training": {"batch_size": 11, "clip_norm": 0.5, "loss_scale": "mpcs_count"},
        "scheduler": {"name": "mpcs_lr"},
    },
    "average, clipped steps and patience": {
        "epochs": {"count": 30, "unit": "pass"},
        "training": {
            "batch_size": 7,
            "learning_rate": 0.5,
            "averaging": 0.9,
            "clip_norm": 0.5,
            "optimizer": {"name": "sgd", "momentum": 0.9},
        },
        "selector": {"by": "mpcs", "top_k": 2, "patience": 2},
    },
}


def records_of(name: str, size: int, root: Path) -> list[Record]:
    config = toy_config(metrics=METRICS, device={"precision": "64-true"}, **RUNS[name])

    def train(world: World) -> None:
        run_in_folder(config, toy_data(), root / f"{name}-{size}", world=world)

    assert succeeded(forked_world(root, size, train)), f"{name}: {size} processes failed"
    return read_records(root / f"{name}-{size}" / "records.csv")


def difference(ours: float, theirs: float) -> float:
    if ours == theirs or (ours != ours and theirs != theirs):
        return 0.0
    return abs(ours - theirs) / max(abs(ours), abs(theirs))


def main(root: Path, size: int) -> None:
    for name in RUNS:
        alone, shared = records_of(name, 1, root), records_of(name, size, root)
        assert len(shared) == len(alone)
        for row, other in zip(shared, alone, strict=True):
            for metric, value in row.items():
                away = difference(value, other[metric])
                allowed = 0.0 if metric in COUNTS else TOLERANCE
                assert away <= allowed, f"{name}: {metric} is {away} away"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
