"""Meet the other processes of a launch, and only those.

A launcher that restarts its processes keeps their store of addresses, and torch then connects to processes that have
died (PyTorch 2.15). So the first process names each launch anew, and tells the name to processes that live.
"""

from time import monotonic, sleep
from uuid import uuid4

from torch.distributed.distributed_c10d import PrefixStore, Store

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
