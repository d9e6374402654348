"""Workers end with their parent, whatever ends it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpcs_torch import processes
from mpcs_torch.processes import run_in_processes
from tests.processes.light_tasks import fail_or_mark, process_and_threads


def soon(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


def is_running(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="looks processes up under /proc"
)
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(
            pytest.param(other, marks=pytest.mark.exhaustive)
            for other in (signal.SIGTERM, signal.SIGINT)
        ),
    ],
)
def test_workers_end_with_their_parent(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.processes.sleepers", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        workers = min(2, processes._cores())
        assert soon(lambda: len(list(tmp_path.glob("*.worker"))) == workers, 60)
        parent.send_signal(number)
        try:
            parent.wait(5)
        finally:
            parent.kill()
    children = [int(path.stem) for path in tmp_path.glob("*.worker")]
    assert soon(lambda: not any(map(is_running, children)), 5), "workers run on"
    assert os.getpid() not in children


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="sends a signal to a group of processes"
)
def test_workers_say_nothing_when_a_terminal_interrupts_all_processes(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.processes.sleepers", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert soon(
            lambda: len(list(tmp_path.glob("*.worker"))) == min(2, processes._cores()), 60
        )
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate(timeout=10)
    assert errors.count("Traceback") == 1  # that of the parent
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.slow
def test_an_error_stops_what_has_not_begun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the first task fails"):
        list(run_in_processes(fail_or_mark, [(number, tmp_path) for number in range(40)]))
    assert len(list(tmp_path.iterdir())) < 30


def test_there_is_a_process_with_one_thread_for_each_core_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_core = {0}
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: one_core, raising=False)
    [(process, threads)] = {
        seen for _, seen in run_in_processes(process_and_threads, range(5))
    }
    assert process != os.getpid()
    assert threads == 1
