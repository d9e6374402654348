"""Kill two processes of a run at random moments and resume it: ``python -m tests.trainer.kill_training FOLDER KILLS``.

Records, checkpoints and result must have the bytes of a run that was left alone. A run of one process is cut off at
each of its writes by `tests/test_power_failures.py`.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from mpcs_torch.processes import World
from mpcs_torch.trainer.folder import run_in_folder
from tests.processes.forked import forked_world, succeeded
from tests.trainer.toy import contents, toy_config, toy_data

CONFIG = toy_config(
    epochs={"count": 300},
    training={"batch_size": 10, "averaging": 0.9, "save_seconds": 0.02},
    scheduler={"name": "mpcs_lr"},
    selector={"by": "mpcs", "top_k": 2, "keep_every": 50},
)
RUN_SECONDS = 2.0
"""At most this long runs last before they are killed."""
OTHER_SECONDS = 0.5
"""At most this long the other process lives on."""


def train(root: Path, folder: Path) -> list[int]:
    def run(world: World) -> None:
        run_in_folder(CONFIG, toy_data(), folder, resume=True, world=world)

    return forked_world(root, 2, run)


def main(root: Path, kills: int) -> None:
    assert succeeded(train(root, root / "whole"))
    expected, draw = contents(root / "whole"), random.Random(0)
    cut = root / "cut"
    killed = 0
    while killed < kills:
        children = train(root, cut)
        time.sleep(draw.uniform(0, RUN_SECONDS))
        for child in draw.sample(children, 2):
            os.kill(child, signal.SIGKILL)
            time.sleep(draw.uniform(0, OTHER_SECONDS))
        if succeeded(children):  # before they were killed
            assert contents(cut) == expected, f"after {killed} kills"
            cut = cut.with_name(f"{cut.name}-again")
        else:
            killed += 1
    assert succeeded(train(root, cut))
    assert contents(cut) == expected, f"after {kills} kills"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
