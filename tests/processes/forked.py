"""Processes that are forked from one that has imported torch, because imports take seconds."""

import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import torch
from torch import distributed

from mpcs_torch.processes import ALONE, World


def forked(function: Callable[[], object]) -> int:
    """Call a function in a child; return its number. The child exits with 1 if it raises an error."""
    with warnings.catch_warnings():
        # Python 3.12 warns where a parent has threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        torch.set_num_threads(1)
        function()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def world_of(store: Path, rank: int, size: int) -> World:
    """Join the processes that meet at a file."""
    if size == 1:
        return ALONE
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size
    )
    return World(rank, size)


def forked_world(folder: Path, size: int, function: Callable[[World], object]) -> list[int]:
    """Call a function in several processes that know each other; return their numbers."""
    store = folder / f"store-{uuid4()}"
    return [
        forked(lambda rank=rank: function(world_of(store, rank, size)))
        for rank in range(size)
    ]


def succeeded(children: list[int]) -> bool:
    """Wait for all children, and return whether each has exited with 0."""
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return not any(statuses)
