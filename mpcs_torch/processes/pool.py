"""Run tasks in parallel processes with one thread each."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

import torch

Task = TypeVar("Task")
Result = TypeVar("Result")


def _cores() -> int:
    """Return the number of cores that this process may use; the machine around a container may have more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_processes(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
    """Call ``function`` on ``tasks`` in parallel; yield each task with its result as soon as the task is finished.

    An error cancels tasks that have not begun. An interrupt, or leaving the iteration early, also kills running tasks.
    """
    processes = max(1, min(len(tasks), _cores()))
    with _pool(processes, threads=1) as pool:
        futures = {pool.submit(function, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


def run_in_child(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function in a new process, and return its result; an interrupt kills the process."""
    with _pool(1) as pool:
        return pool.submit(function, *arguments).result()


@contextmanager
def _pool(processes: int, threads: int | None = None) -> Iterator[ProcessPoolExecutor]:
    # Processes are spawned, because forked ones may hang after torch has used threads.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin, initargs=(threads,))
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):  # running tasks may take long
        for worker in (pool._processes or {}).values():
            worker.kill()
        raise
    finally:  # instead of a with statement, which would not cancel waiting tasks
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(threads: int | None) -> None:
    """Ignore Ctrl-C, which a terminal sends to every process, and exit when the parent process exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if threads is not None:
        torch.set_num_threads(threads)

    def watch() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
