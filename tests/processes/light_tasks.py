"""Tasks for pools, apart from tests: their processes import little."""

import os
import time
from pathlib import Path

import torch


def fail_or_mark(task: tuple[int, Path]) -> None:
    number, folder = task
    if number == 0:
        raise ValueError("the first task fails")
    time.sleep(0.2)
    (folder / str(number)).touch()


def process_and_threads(task: int) -> tuple[int, int]:
    return os.getpid(), torch.get_num_threads()
