"""The processes of a launch by torchrun, and what they exchange."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from mpcs_torch.errors import MpcsError

T = TypeVar("T")


class LostProcessError(MpcsError, RuntimeError):
    """Another process of the run has died, or cannot be reached."""


class OtherProcessError(MpcsError, RuntimeError):
    """Another process of the run failed, and prints why."""

    is_printed_elsewhere = True


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
        known = signature(DistributedDataParallel).parameters
        name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its older name
        local_batch_norm: dict[str, Any] = {name: False}
        return DistributedDataParallel(model, **local_batch_norm)

    def gather_rows(self, share: Tensor, count: int) -> Tensor:
        """Gather the rows of all processes.

        Every process computes the loss of all rows, so the gradient of its share of rows is complete: the backward pass
        of PyTorch's differentiable gather would exchange equal numbers.

        Args:
            share: The rows of this process, (m, K), floating point.
            count: The number of rows of all processes.

        Returns:
            (count, K), of which the rows of this process keep their gradient.
        """
        if self.size == 1:
            return share
        rows = [World(rank, self.size).rows(count) for rank in range(self.size)]
        sizes = [each.stop - each.start for each in rows]
        padded = share.new_zeros(max(sizes), *share.shape[1:])
        padded[: len(share)] = share.detach()
        parts = [torch.empty_like(padded) for _ in rows]
        distributed.all_gather(parts, padded)
        parts = [part[:size] for part, size in zip(parts, sizes, strict=True)]
        parts[self.rank] = share
        return torch.cat(parts)

    def any_set(self, flags: Sequence[bool], device: torch.device) -> list[bool]:
        """Return which flags are set in any process."""
        seen = torch.tensor(flags, dtype=torch.int64, device=device)
        self.add_up([seen])
        return [flag > 0 for flag in seen.tolist()]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over the processes."""
        if self.size > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.size > 1:
            for tensor in tensors:
                distributed.broadcast(tensor.detach(), src=0)

    def gather(self, function: Callable[[], T]) -> list[T]:
        """Call a function in every process, and return the results of all, by rank; an error in one of them ends all.

        Raises:
            OtherProcessError: If the function raises an error in another process; of several, the first prints its own.
        """
        if self.size == 1:
            return [function()]
        failure: Exception | None = None
        outcome: tuple[T | None, str | None] = None, "it was interrupted"
        outcomes: list[Any] = [None] * self.size
        try:
            outcome = function(), None
        except Exception as error:
            failure, outcome = error, (None, str(error))
        finally:
            distributed.all_gather_object(outcomes, outcome)
        failed = [rank for rank, (_, message) in enumerate(outcomes) if message is not None]
        if failure is not None and failed[0] == self.rank:
            raise failure
        if failed:
            raise OtherProcessError(outcomes[failed[0]][1])
        return [result for result, _ in outcomes]

    def from_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process alone, and return its result in all of them.

        Raises:
            OtherProcessError: In the other processes, if the function raises an error in the first.
        """
        result: Any = self.gather(lambda: function() if self.is_first else None)[0]
        return cast("T", result)


ALONE = World()


@contextmanager
def joined() -> Iterator[World]:
    """Join the processes that ``torchrun`` has launched, if it has launched several.

    A launcher that restarts its processes keeps the store of their addresses, so each restart has its own part of it.

    Raises:
        LostProcessError: If another process cannot be reached.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    try:
        store, rank, size = next(rendezvous("env://"))
        store = PrefixStore(f"restart-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        distributed.init_process_group(store=store, rank=rank, world_size=size)  # gloo for CPUs, NCCL for GPUs
        yield World(rank, size)
    except RuntimeError as error:
        if not is_of_backend(error):
            raise
        reason = str(error).splitlines()[0]
        raise LostProcessError(f"another process of this run cannot be reached: {reason}") from error
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def is_of_backend(error: Exception) -> bool:
    """Return whether an error comes from gloo, NCCL or the store of addresses, rather than from a model."""
    return isinstance(error, distributed.DistError) or any(name in str(error) for name in ("gloo/", "NCCL"))
