"""Tasks in parallel processes with one thread each."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
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
    """Yield each task with its result as it finishes; an error cancels the tasks that have not begun.

    An interrupt, or a caller that stops to iterate, ends those that have begun as well.
    """
    processes = max(1, min(len(tasks), _cores()))
    with _pool(processes, _begin_worker) as pool:
        with _signals_to_parent():  # the first task starts all workers
            futures = {pool.submit(function, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


def run_in_child(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function in a process of its own, with as many threads as this one; an interrupt ends it."""
    with _pool(1, die_with_parent) as pool:
        with _signals_to_parent():
            future = pool.submit(function, *arguments)
        return future.result()


@contextmanager
def _pool(processes: int, begin: Callable[[int], None]) -> Iterator[ProcessPoolExecutor]:
    # Spawned, because a fork of a process that has used threads of torch may hang.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=begin, initargs=(os.getpid(),))
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):  # the tasks that have begun would take long to finish
        for worker in (pool._processes or {}).values():
            worker.kill()
        raise
    finally:  # not a with statement, whose shutdown would take back the cancelling
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _signals_to_parent() -> Iterator[None]:
    """Let processes that start inside never see Ctrl-C and SIGTERM, of which a terminal sends one to every process.

    They inherit the blocked signals. Their parent, which gets its own a moment later, ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
