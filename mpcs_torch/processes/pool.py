"""Tasks in parallel processes with one thread each."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from threading import Thread
from time import sleep
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")

PARENT_SECONDS = 0.5
"""Between two looks at whether the parent is there."""


def _cores() -> int:
    """Return the number of cores that this process may use, which in a container can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_processes(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as it finishes; an error cancels the tasks that have not begun."""
    processes = max(1, min(len(tasks), _cores()))
    # Spawned, because a fork of a process that has used threads of torch may hang.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin_worker, initargs=(os.getpid(),))
    try:
        futures = {pool.submit(function, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except KeyboardInterrupt:  # the tasks that have begun would take long to finish
        for worker in pool._processes.values():
            worker.kill()
        raise
    finally:  # not a with statement, whose shutdown would take back the cancelling
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    die_with_parent(parent)
    torch.set_num_threads(1)


def die_with_parent(parent: int) -> None:
    """End this process soon after its parent, whatever ends that."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(PARENT_SECONDS)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
