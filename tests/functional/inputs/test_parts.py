"""Rows in parts: all of them, in order, in threads that leave those of PyTorch as they were."""

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from mpcs_torch.functional import brier_score, meta_pattern_concern_score
from mpcs_torch.functional.inputs import parts
from mpcs_torch.functional.inputs.parts import LARGE, in_own_threads, of_parts

ROWS = torch.arange(float(LARGE)).unsqueeze(1)


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(parts, "SHARE", 1000)  # all threads work, for a few numbers too
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@in_own_threads
def doubled(values: Tensor, size: int = 777) -> tuple[Tensor, set[int]]:
    """Return the doubled rows, and the number of threads that each part saw."""
    found = of_parts(lambda rows: (2 * values[rows], torch.get_num_threads()), values, size=size)
    return torch.cat([part for part, _ in found]), {seen for _, seen in found}


@pytest.mark.parametrize("size", [70, 999, LARGE - 1, LARGE, 2 * LARGE])
def test_all_rows_come_in_order(threads: int, size: int) -> None:
    result, seen = doubled(ROWS, size)
    assert torch.equal(result, 2 * ROWS)
    assert seen == {1}
    assert torch.get_num_threads() == threads


def test_an_error_in_a_part_is_raised_and_leaves_the_threads_as_they_were(threads: int) -> None:
    @in_own_threads
    def failing(values: Tensor) -> None:
        def work(rows: slice) -> None:
            if rows.start > 500:
                raise ValueError(f"rows from {rows.start} on")

        of_parts(work, values, size=100)

    with pytest.raises(ValueError, match=r"rows from \d+ on"):
        failing(ROWS)
    assert torch.get_num_threads() == threads
    assert torch.equal(doubled(ROWS)[0], 2 * ROWS)


def test_gradients_flow_through_one_part(threads: int) -> None:
    values = ROWS.clone().requires_grad_()
    doubled(values)[0].sum().backward()
    assert values.grad is not None
    assert (values.grad == 2).all()


def test_the_mode_of_the_caller_holds_in_all_parts(threads: int) -> None:
    with torch.inference_mode():
        assert doubled(ROWS)[0].is_inference()
    assert not doubled(ROWS)[0].requires_grad


def threads_of_a_later_thread() -> int:
    with ThreadPoolExecutor(1) as other:
        return other.submit(torch.get_num_threads).result()


def test_threads_that_others_start_later_have_all_threads(threads: int) -> None:
    doubled(ROWS)
    assert threads_of_a_later_thread() == threads


def test_a_kernel_in_one_thread_leaves_the_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SHARE", 2**40)
    monkeypatch.setattr(parts, "_pools", {})
    doubled(ROWS)
    assert threads_of_a_later_thread() == torch.get_num_threads() == threads


def test_a_kernel_runs_once_where_its_thread_starts_and_fails(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        """A pool that takes the work, but cannot start a further thread."""

        def submit(self, work: Callable[..., object], *args: object) -> None:
            threading.Thread(target=work, args=args).start()
            raise RuntimeError("can't start new thread")

    calls = list[int]()

    @in_own_threads
    def counted(values: Tensor) -> Tensor:
        calls.append(1)
        return values.sum()

    monkeypatch.setattr(parts, "_pool", lambda _: Failing())
    assert counted(ROWS) == ROWS.sum()
    assert len(calls) == 1
    assert torch.get_num_threads() == threads


def test_threads_that_others_start_meanwhile_have_all_threads(threads: int) -> None:
    seen, stop = set[int](), threading.Event()

    def work() -> None:
        while not stop.is_set():
            doubled(ROWS)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(50):
            seen.add(threads_of_a_later_thread())
    finally:
        stop.set()
        worker.join()
    assert seen == {threads}


AT_THE_END = """
import atexit, threading, time, torch
from mpcs_torch.functional import brier_score
torch.set_num_threads(2)
logits, target = torch.zeros(60_000, 4), torch.zeros(60_000, dtype=torch.int64)
score = lambda: print(f"{brier_score(logits, target, num_classes=4).item():.2f}", flush=True)
def later():
    time.sleep(0.5)
    score()
threading.Thread(target=later).start()
atexit.register(score)
score()
"""


def test_kernels_run_while_the_interpreter_ends() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0.75"] * 3, done.stderr


WITHOUT_THREADS = """
import threading, torch
from mpcs_torch.functional import brier_score
torch.set_num_threads(4)
def fail(self):
    raise RuntimeError("can't start new thread")
start, threading.Thread.start = threading.Thread.start, fail
logits, target = torch.zeros(60_000, 4), torch.zeros(60_000, dtype=torch.int64)
print(f"{brier_score(logits, target, num_classes=4).item():.2f}", flush=True)
"""


def test_a_kernel_runs_where_no_thread_can_be_started() -> None:
    call = [sys.executable, "-c", WITHOUT_THREADS]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0.75"], done.stderr


def _in_child() -> None:
    assert torch.equal(doubled(ROWS)[0], 2 * ROWS)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(threads: int) -> None:
    doubled(ROWS)
    child = multiprocessing.get_context("fork").Process(target=_in_child)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("classes", [10, 40])
def test_a_value_does_not_depend_on_the_number_of_threads(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SHARE", 2**17)
    before = torch.get_num_threads()
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(30_000, classes, generator=generator)
    target = torch.randint(0, classes, (30_000,), generator=generator)
    found = []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            scores = meta_pattern_concern_score(logits, target, num_classes=classes, reduction="none")
            found.append((scores, brier_score(logits, target, num_classes=classes)))
    finally:
        torch.set_num_threads(before)
    for scores, brier in found[1:]:
        assert torch.equal(scores, found[0][0])
        torch.testing.assert_close(brier, found[0][1], rtol=1e-13, atol=0)
