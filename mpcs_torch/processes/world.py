"""Meet the other processes of a launch, and only those.

A launcher that restarts its processes keeps their store of addresses, and torch then connects to processes that have
died (PyTorch 2.15). So the first process names each launch anew, and tells the name to processes that live.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from inspect import signature
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import uuid4

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from mpcs_torch.errors import MpcsError
from mpcs_torch.processes.pool import die_with_parent

SECONDS = 300.0
"""The longest wait for the other processes."""
POLL_SECONDS = 0.02


def store_of_launch(store: Store, rank: int, size: int) -> Store:
    """Return a part of a store that only the living processes of this launch know.

    Raises:
        RuntimeError: If not all of them come.
    """
    deadline = monotonic() + SECONDS
    if rank:
        own = uuid4().hex
        store.set(f"asks/{rank}/{store.add(f'asked/{rank}', 1)}", own)
        while not store.check([f"launch/{own}"]):
            _wait(deadline)
        launch = PrefixStore(store.get(f"launch/{own}").decode(), store)
        launch.set(f"here/{rank}", "")
        return launch
    name = f"launch-{uuid4().hex}"
    launch = PrefixStore(name, store)
    while not all(launch.check([f"here/{other}"]) for other in range(1, size)):
        for other in range(1, size):
            for number in range(1, store.add(f"asked/{other}", 0) + 1):  # those of dead processes as well
                if store.check([question := f"asks/{other}/{number}"]):
                    store.set(f"launch/{store.get(question).decode()}", name)
        _wait(deadline)
    return launch


def _wait(deadline: float) -> None:
    if monotonic() > deadline:
        raise RuntimeError(f"the processes of this launch have not met within {SECONDS:g} seconds")
    sleep(POLL_SECONDS)


Told = TypeVar("Told")


class LostProcessError(MpcsError, RuntimeError):
    """Another process of the run has died, or cannot be reached."""


class OtherProcessError(MpcsError, RuntimeError):
    """Another process of the run has raised an error, and tells it."""

    is_told_elsewhere = True


@dataclass(frozen=True)
class World:
    """This process among those of a run; alone by default."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def rows(self, count: int) -> slice:
        """Return the rows of this process out of a number of rows; the shares differ by one row at most."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def engine(self, model: nn.Module) -> nn.Module:
        """Return what trains a model: in several processes, PyTorch's `DistributedDataParallel`."""
        if self.size == 1:
            return model
        with _reached(of_exchange=told_by_backend):  # the model may not suit the engine
            known = signature(DistributedDataParallel).parameters
            name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its older name
            own_batch_norm: dict[str, Any] = {name: False}
            return DistributedDataParallel(model, **own_batch_norm)

    def gather_rows(self, own: Tensor, count: int, flags: Sequence[bool] = ()) -> tuple[Tensor, tuple[bool, ...]]:
        """Gather the rows of all processes, and tell which flags are set in any of them.

        Every process computes the loss of all rows, so the gradient of its own rows is complete: the backward pass of
        PyTorch's differentiable gather would exchange equal numbers.

        Args:
            own: The rows of this process, (m, K), floating point.
            count: The number of rows of all processes.
            flags: At most K.

        Returns:
            (count, K), of which the rows of this process keep their gradient, and the flags.
        """
        if self.size == 1:
            return own, tuple(flags)
        shares = [World(rank, self.size).rows(count) for rank in range(self.size)]
        sizes = [share.stop - share.start for share in shares]
        padded = own.new_zeros(max(sizes) + 1, *own.shape[1:])
        padded[: len(own)] = own.detach()
        padded[-1, : len(flags)] = own.new_tensor(flags)
        parts = [torch.empty_like(padded) for _ in shares]
        with _reached():
            distributed.all_gather(parts, padded)
        seen = torch.stack([part[-1, : len(flags)] for part in parts]).amax(dim=0) if flags else own.new_zeros(0)
        parts = [part[:size] for part, size in zip(parts, sizes, strict=True)]
        parts[self.rank] = own
        return torch.cat(parts), tuple(flag > 0 for flag in seen.tolist())

    @contextmanager
    def summing(self, engine: nn.Module) -> Iterator[None]:
        """Let the engine add up the gradients of this process alone: not yet before an optimizer step."""
        with engine.no_sync() if isinstance(engine, DistributedDataParallel) else nullcontext():
            yield

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of the loss of the rows of all processes, a scalar."""
        of_engine = loss if self.size == 1 else self.size * loss  # the engine takes the mean over processes
        of_engine.backward()  # type: ignore[no-untyped-call]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over the processes."""
        if self.size > 1:
            with _reached():
                for tensor in tensors:
                    distributed.all_reduce(tensor)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.size > 1:
            with _reached():
                for tensor in tensors:
                    distributed.broadcast(tensor.detach(), src=0)

    def told_by_first(self, function: Callable[[], Told]) -> Told:
        """Call a function in the first process alone, and return its result in all of them.

        Raises:
            OtherProcessError: In the other processes, if the function raises an error in the first.
        """
        if self.size == 1:
            return function()
        told: list[Any] = [None, "it was interrupted"]
        try:
            if self.is_first:
                told = [function(), None]
        except Exception as error:
            told[1] = str(error)
            raise
        finally:
            with _reached():
                distributed.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise OtherProcessError(told[1])
        result: Told = told[0]
        return result

    def told_by_all(self, own: Told) -> list[Told]:
        """Return what every process gives, by rank."""
        if self.size == 1:
            return [own]
        told: list[Any] = [None] * self.size
        with _reached():
            distributed.all_gather_object(told, own)
        return told

    def done_by_all(self, function: Callable[[], Told]) -> Told:
        """Call a function in every process, and return its result; an error in one of them ends all.

        Raises:
            OtherProcessError: If the function raises an error in another process; of several, the first tells its own.
        """
        if self.size == 1:
            return function()
        failure: Exception | None = None
        try:
            result = function()
        except Exception as error:
            failure = error
        failures = self.told_by_all(None if failure is None else str(failure))
        failed = [rank for rank, message in enumerate(failures) if message is not None]
        if failure is not None and failed[0] == self.rank:
            raise failure
        if failed:
            raise OtherProcessError(failures[failed[0]])
        return result


ALONE = World()


def launched() -> int:
    """Return the number of processes that ``torchrun`` has launched, 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that ``torchrun`` has launched, if it has launched several."""
    if launched() == 1:
        yield ALONE
        return
    die_with_parent(os.getppid())  # a launcher that is killed leaves its processes behind
    with _reached():
        store, rank, size = next(rendezvous("env://"))
        store = store_of_launch(store, rank, size)
        distributed.init_process_group(store=store, rank=rank, world_size=size)  # gloo for CPUs, NCCL for GPUs
    try:
        with _reached(of_exchange=told_by_backend):  # PyTorch's engines exchange within the steps of the model
            yield World(rank, size)
    finally:
        distributed.destroy_process_group()


def told_by_backend(error: RuntimeError) -> bool:
    """Tell whether an error comes from gloo, NCCL or the store of addresses, rather than from a model."""
    return isinstance(error, distributed.DistError) or any(name in str(error) for name in ("gloo/", "NCCL"))


@contextmanager
def _reached(of_exchange: Callable[[RuntimeError], bool] = lambda _: True) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, MpcsError) or not of_exchange(error):
            raise
        reason = str(error).splitlines()[0]
        raise LostProcessError(f"another process of this run cannot be reached: {reason}") from error
