"""Processes of a launch meet each other, and none that came before."""

import threading
from pathlib import Path

import pytest
from torch.distributed import FileStore, Store

from mpcs_torch.processes import world as rendezvous
from mpcs_torch.processes.world import store_of_launch


def meet(path: Path, size: int) -> list[Store]:
    """Launch threads that stand for processes; the first comes last."""
    found: dict[int, Store] = {}

    def come(rank: int) -> None:
        found[rank] = store_of_launch(FileStore(str(path), -1), rank, size)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in reversed(range(size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [found[rank] for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_launch_meets_in_a_place_of_its_own(tmp_path: Path, size: int) -> None:
    path = tmp_path / "store"
    store = FileStore(str(path), -1)
    for launch in range(3):
        store.set(f"asks/1/{store.add('asked/1', 1)}", "of a process that died")
        store.add("asked/1", 1)  # by one that died even before it asked
        first, *others = meet(path, size)
        assert not first.check(["address"]), "nothing is left of an earlier launch"
        first.set("address", str(launch))
        assert all(other.get("address") == str(launch).encode() for other in others)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_nobody_meets_gives_up(rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "SECONDS", 0.1)
    with pytest.raises(RuntimeError, match=r"have not met within 0\.1 seconds"):
        store_of_launch(FileStore(str(tmp_path / "store"), -1), rank, 2)
