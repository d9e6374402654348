"""Kill a loop that saves checkpoints at random moments; exit with 1 if a checkpoint or a foreign file was lost.

The loops are forked from one process that has imported torch, because 200 imports would take minutes.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from mpcs_torch.learning import CheckpointSelector, SelectionRule

EPOCHS = 40
RULE = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"}, within={"accuracy": 0.2})


def values(epoch: int) -> dict[str, float]:
    draw = random.Random(epoch)
    return {"mpcs": draw.random(), "accuracy": draw.random()}


def train(folder: Path) -> None:
    """Continue the loop after the last recorded epoch."""
    selector = CheckpointSelector(
        folder, RULE, top_k=2, keep_last=True, keep_every=10, resume=True
    )
    for epoch in range((selector.last_epoch or 0) + 1, EPOCHS + 1):
        selector.update(
            {"weight": torch.full((64, 64), float(epoch))}, epoch=epoch, **values(epoch)
        )


def check(folder: Path, entered: int) -> int:
    """Check that the best of all recorded epochs loads and no other file was touched; return the number recorded."""
    selector = CheckpointSelector(
        folder, RULE, top_k=2, keep_last=True, keep_every=10, resume=True
    )
    if not selector.epochs:
        assert entered == 0, "the manifest was lost"
        return 0
    assert len(selector.epochs) >= entered, "the manifest lost epochs"
    assert [epoch.number for epoch in selector.epochs] == list(
        range(1, len(selector.epochs) + 1)
    )
    assert selector.best is not None
    assert selector.load_best()["weight"][0, 0] == selector.best.number, (
        "another checkpoint than the best"
    )
    assert (folder / "epoch-00003.pt").read_text() == "foreign", (
        "a foreign file was touched"
    )
    before = {path.name for path in folder.iterdir()}
    last = selector.epochs[-1].number
    # The epoch is recorded already, so this only finishes pending work.
    selector.update({}, epoch=last, **values(last))
    owned = {epoch.file for epoch in selector.epochs if epoch.file}
    found = {path.name for path in folder.iterdir()} - {"manifest.json", "epoch-00003.pt"}
    assert found == owned, f"left over or missing: {found ^ owned}"
    assert found <= before, "a repeated epoch was saved"
    return len(selector.epochs)


def prepare(folder: Path) -> Path:
    folder.mkdir()
    (folder / "epoch-00003.pt").write_text("foreign")
    return folder


def main(root: Path, kills: int) -> None:
    train(prepare(root / "unbroken"))
    unbroken = (root / "unbroken" / "manifest.json").read_bytes()
    draw, done, rounds = random.Random(0), 0, 0
    while done < kills:
        rounds += 1
        folder, entered = prepare(root / f"killed-{rounds}"), 0
        while entered < EPOCHS:
            child = os.fork()
            if child == 0:
                train(folder)
                os._exit(0)
            time.sleep(draw.uniform(0.02, 0.2))  # forking takes part of it
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            done += os.WIFSIGNALED(status)
            entered = check(folder, entered)
        assert (folder / "manifest.json").read_bytes() == unbroken, (
            "another manifest than the unbroken loop's"
        )
    print(f"killed {done} times in {rounds} runs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
