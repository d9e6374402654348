"""Tasks in parallel processes with one thread each."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")


def _cores() -> int:
    """Return the number of cores that this process may use, which in a container can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_processes(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as it finishes; an error cancels the tasks that have not begun."""
    processes = max(1, min(len(tasks), _cores()))
    # Spawned, because a fork of a process that has used threads of torch may hang.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = {pool.submit(function, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:  # not a with statement, whose shutdown would take back the cancelling
        pool.shutdown(wait=True, cancel_futures=True)
