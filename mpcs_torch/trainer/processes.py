"""Tasks side by side, each process with one thread."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_in_processes(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as it finishes; an error stops what has not begun."""
    processes = max(1, min(len(tasks), os.cpu_count() or 1))
    # Spawned, because a fork of a process that has used threads of torch may hang.
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            futures = {pool.submit(function, task): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
