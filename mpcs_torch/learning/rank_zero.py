"""The processes of a distributed run: all of them use the values of rank 0, and only rank 0 writes files."""

from typing import TypeVar

from torch import distributed

Value = TypeVar("Value")


def has_other_ranks() -> bool:
    """Return whether ``torch.distributed`` is initialized with more than one process."""
    return (
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def is_follower() -> bool:
    """Return whether this process is a rank other than 0, which must not write."""
    return has_other_ranks() and distributed.get_rank() > 0


def from_first_rank(value: Value) -> Value:
    """Return ``value`` of rank 0 in every rank. All ranks must call this function."""
    if not has_other_ranks():
        return value
    shared = [value]
    distributed.broadcast_object_list(shared, src=0)
    return shared[0]


def wait_for_all_ranks() -> None:
    """Return once every rank has called this function."""
    if has_other_ranks():
        distributed.barrier()
