"""Train under torchrun: ``python -m tests.trainer.launched FOLDER``; exits with 1 if records differ.

One process, two, one of which is killed and restarted by torchrun, and two launchers that meet as two nodes.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch

from mpcs_torch.trainer.result import read_records
from tests.trainer.distributed_runs import TOLERANCE, difference

CONFIG = """
data: {name: digits}
model: {path: "tests.trainer.launched:fragile"}
training: {batch_size: 50, save_seconds: 0}
epochs: {count: 12, every: 7}
selector: {by: mpcs}
device: {precision: 64-true}
name: whole
"""
NODES = [
    "--nnodes=2",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=localhost:29417",
    "--rdzv-id=nodes",
]


class Fragile(torch.nn.Sequential):
    """Kills its process in the 40th step of the first try, if the run asks for it."""

    steps = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.steps += self.training
        is_first_try = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
        if (
            self.steps == 40
            and is_first_try
            and os.environ.get("KILL_RANK") == os.environ["RANK"]
        ):
            os.kill(os.getpid(), 9)
        return super().forward(inputs)


def fragile(input_shape: torch.Size, num_classes: int) -> torch.nn.Module:
    size = input_shape.numel()
    return Fragile(
        torch.nn.Flatten(),
        torch.nn.Linear(size, 16),
        torch.nn.ReLU(),
        torch.nn.Linear(16, num_classes),
    )


def launch(
    folder: Path, name: str, *options: str, **environment: str
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *options,
        "-m",
        "mpcs_torch",
        "train",
    ]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(
        [*command, folder / "config.yaml", f"name={name}", "--out", folder], env=variables
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(CONFIG)
    assert launch(folder, "one").wait() == 0
    assert launch(folder, "two", "--nproc-per-node=2").wait() == 0
    for rank in ("0", "1"):
        restarts = ("--nproc-per-node=2", "--max-restarts=1")
        assert launch(folder, f"restarted-{rank}", *restarts, KILL_RANK=rank).wait() == 0
    nodes = [launch(folder, "nodes", "--nproc-per-node=1", *NODES) for _ in range(2)]
    assert [node.wait() for node in nodes] == [0, 0]
    runs = {
        name: folder / name
        for name in ("one", "two", "restarted-0", "restarted-1", "nodes")
    }
    whole = read_records(runs["one"] / "records.csv")
    for name, run in runs.items():
        records = read_records(run / "records.csv")
        furthest = max(
            difference(row[key], other[key])
            for row, other in zip(records, whole, strict=True)
            for key in row
        )
        same = all(
            path.read_bytes() == (run / path.relative_to(runs["two"])).read_bytes()
            for path in (
                runs["two"] / "records.csv",
                *sorted((runs["two"] / "checkpoints").glob("*.pt")),
            )
            if name != "one"
        )
        print(
            f"{name}: largest relative difference from one process {furthest:.1e}; bytes of two processes: {same}"
        )
        assert furthest <= TOLERANCE
        assert same


if __name__ == "__main__":
    main(Path(sys.argv[1]))
