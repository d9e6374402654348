"""Kill runs at random moments, resume them: ``python -m tests.trainer.kill_training FOLDER KILLS PROCESSES``.

Exits with 1 unless records, checkpoints and result have the bytes of a run that was left alone. Of several processes a
random one is killed, and the others after it, as a launcher does.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from pickle import UnpicklingError

import torch

from mpcs_torch.processes import World
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.resume import FILE
from tests.processes.forked import forked_world, succeeded
from tests.trainer.toy import toy_config, toy_data

CONFIG = toy_config(
    epochs={"count": 300},
    training={"batch_size": 10, "averaging": 0.9, "save_seconds": 0.02},
    scheduler={"name": "mpcs_lr"},
    selector={"by": "mpcs", "top_k": 2, "keep_every": 50},
)
RUN_SECONDS = 2.0
"""At most this long runs last before they are killed."""
PATIENCE_SECONDS = 2.0
"""For the other processes of a killed one."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in each file; of the saved state its values, because pickle tells equal objects from the same."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): values_in(path) for path in files}


def values_in(path: Path) -> bytes:
    try:
        return (
            repr(plain(torch.load(path, weights_only=True))).encode()
            if path.name == FILE
            else path.read_bytes()
        )
    except (RuntimeError, EOFError, UnpicklingError):
        return path.read_bytes()


def plain(state: object) -> object:
    if isinstance(state, torch.Tensor):
        return state.dtype, state.tolist()
    if isinstance(state, dict):
        return {key: plain(value) for key, value in state.items()}
    return [plain(value) for value in state] if isinstance(state, list | tuple) else state


def is_running(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def kill(children: list[int], draw: random.Random) -> bool:
    """Kill a process after a while; return False if all had finished by then."""
    until = time.monotonic() + draw.uniform(0, RUN_SECONDS)
    while any(map(is_running, children)) and time.monotonic() < until:
        time.sleep(0.002)
    if not any(map(is_running, children)):
        return False
    os.kill(draw.choice(children), signal.SIGKILL)
    until = time.monotonic() + PATIENCE_SECONDS
    while any(map(is_running, children)) and time.monotonic() < until:
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
    return True


def main(root: Path, kills: int, size: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    draw = random.Random(size)
    whole, cut = root / "whole", root / "cut"

    def train(folder: Path) -> list[int]:
        def run(world: World) -> None:
            run_in_folder(CONFIG, toy_data(), folder, resume=True, world=world)

        return forked_world(root, size, run)

    assert succeeded(train(whole))
    expected, killed, finished = contents(whole), 0, 0
    while killed < kills:
        children = train(cut)
        if kill(children, draw):
            killed += 1
            succeeded(children)
            continue
        assert succeeded(children), "a resumed run failed"
        finished += 1
        assert contents(cut) == expected, f"after {killed} kills"
        cut = root / f"cut-{finished}"
    assert succeeded(train(cut))
    assert contents(cut) == expected, f"after {killed} kills"
    print(
        f"{killed} kills of {finished + 1} runs with {size} processes: all bytes as in a run that was left alone"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
