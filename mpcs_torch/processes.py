"""Run tasks in parallel processes, and let the processes that torchrun launches communicate."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from mpcs_torch.errors import CodedError

Task = TypeVar("Task")
Result = TypeVar("Result")


def _cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result]]:
    """Call ``function`` on each of ``tasks`` in parallel; yield each task with its result once the task ends.

    Each process has one thread. An error cancels all tasks that have not begun. Ctrl-C, or ending the iteration early,
    also kills running tasks.
    """
    # A forked process may hang after torch has used threads, so processes are spawned.
    pool = ProcessPoolExecutor(
        max(1, min(len(tasks), _cores())), get_context("spawn"), initializer=_begin
    )
    try:
        futures = {pool.submit(function, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except (KeyboardInterrupt, GeneratorExit):  # running tasks may take long
        for worker in (pool._processes or {}).values():
            worker.kill()
        raise
    finally:  # instead of a with statement, which would not cancel waiting tasks
        pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """Set up a worker process: ignore Ctrl-C, use one thread, and exit when the parent process exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)

    def watch() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


T = TypeVar("T")


class LostProcessError(CodedError, RuntimeError):
    """The error raised if another process of the run died or cannot be reached."""


class OtherProcessError(CodedError, RuntimeError):
    """The error raised if another process of the run failed. That process prints the cause."""

    is_printed_elsewhere = True


@dataclass(frozen=True)
class World:
    """The rank of this process (0 to ``size`` - 1) and the number of processes, ``size``."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Return the slice of ``count`` rows that this process handles. Slice sizes differ by at most one row."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def engine(self, model: nn.Module) -> nn.Module:
        """Return ``model``, wrapped in `DistributedDataParallel` if there are several processes."""
        if self.size == 1:
            return model
        name = "forward_sync_buffers"
        if name not in signature(DistributedDataParallel).parameters:
            name = "broadcast_buffers"  # its older name
        local_batch_norm: dict[str, Any] = {name: False}
        return DistributedDataParallel(model, **local_batch_norm)

    def gather_rows(self, share: Tensor, count: int) -> Tensor:
        """Return the rows of all processes in the order of ranks, (count, K). ``share`` has the m rows of this process.

        Only ``share`` keeps gradients. This suffices, because every process computes the loss of all rows.
        """
        if self.size == 1:
            return share
        sizes = list[int]()
        for rank in range(self.size):
            rows = World(rank, self.size).rows(count)
            sizes.append(rows.stop - rows.start)
        padded = share.new_zeros(max(sizes), *share.shape[1:])
        padded[: len(share)] = share.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        parts = [part[:size] for part, size in zip(parts, sizes, strict=True)]
        parts[self.rank] = share
        return torch.cat(parts)

    def any_set(self, flags: Sequence[bool], device: torch.device) -> list[bool]:
        """Return for each of ``flags`` whether it is True in at least one process."""
        seen = torch.tensor(flags, dtype=torch.int64, device=device)
        self.add_up([seen])
        return [flag > 0 for flag in seen.tolist()]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each of ``tensors``, in place, by its sum over all processes."""
        if self.size > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace the values of ``tensors``, in place, by their values in rank 0."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor.detach(), src=0)

    def gather(self, function: Callable[[], T]) -> list[T]:
        """Call ``function`` in every process, and return the results of all processes in the order of ranks.

        Raises:
            OtherProcessError: If ``function`` fails in another rank. The lowest failing rank raises its own error.
        """
        if self.size == 1:
            return [function()]
        failure: Exception | None = None
        # The result, and the message of an error or None.
        outcome: tuple[T | None, str | None] = (None, "it was interrupted")
        outcomes: list[Any] = [None] * self.size
        try:
            outcome = (function(), None)
        except Exception as error:
            failure = error
            outcome = (None, str(error))
        finally:  # also after Ctrl-C, so that the other processes do not wait for this one
            distributed.all_gather_object(outcomes, outcome)
        failed = [rank for rank, (_, message) in enumerate(outcomes) if message is not None]
        if failure is not None and failed[0] == self.rank:
            raise failure
        if failed:
            raise OtherProcessError("caused_by", cause=outcomes[failed[0]][1])
        return [result for result, _ in outcomes]

    def from_first(self, function: Callable[[], T]) -> T:
        """Call ``function`` in rank 0 only, and return its result in all ranks; if it fails, all ranks raise errors."""

        def called_in_first() -> T | None:
            return function() if self.is_first else None

        result = self.gather(called_in_first)[0]
        return cast("T", result)


ALONE = World()


@contextmanager
def joined() -> Iterator[World]:
    """Connect the processes that ``torchrun`` launched, if there are several, and yield the `World`.

    torchrun keeps its key-value store when it restarts the processes, so each start uses another prefix for its keys.

    Raises:
        LostProcessError: If another process cannot be reached.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    try:
        store, rank, size = next(rendezvous("env://"))
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"restart-{restarts}", store)
        # By default, gloo is used for CPUs, and NCCL for GPUs.
        distributed.init_process_group(store=store, rank=rank, world_size=size)
        yield World(rank, size)
    except RuntimeError as error:
        if not is_of_backend(error):
            raise
        raise LostProcessError("lost_process", cause=str(error).splitlines()[0]) from error
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def is_of_backend(error: Exception) -> bool:
    """Return whether ``error`` comes from the communication between processes (gloo, NCCL or the store)."""
    text = str(error)
    return isinstance(error, distributed.DistError) or "gloo/" in text or "NCCL" in text
