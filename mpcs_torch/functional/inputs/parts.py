"""Work on rows in parts that fit the cache of a CPU core, one thread for each part.

PyTorch divides each operation between threads, which wait for each other at its end. A kernel of many small operations
waits as often, and for long where other processes keep a core busy. Here a kernel runs in threads of our own, whose
operations PyTorch does not divide, and each of them takes part after part.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from itertools import pairwise
from threading import Lock, Thread, local
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

P = ParamSpec("P")
T = TypeVar("T")

PART = {"cpu": 2**17, "cuda": 2**26}
"""The number of scores that are worked on at once: what fits the cache of a core several times, or keeps a GPU busy."""
OTHER_PART = 2**22
"""That on other devices."""
LARGE = 2**15
"""The number of scores from which on PyTorch divides an operation."""

SHARE = 2**19
"""The number of scores for each thread, at least: fewer would wait for Python, and for PyTorch's threads to sleep."""


class _Own(local):
    """Hold the state of a thread of ours."""

    pool: ThreadPoolExecutor | None = None
    """The threads beside it; None in a thread that is not ours."""
    threads = 1
    """Their number."""


_own = _Own()


def in_own_threads(kernel: Callable[P, T]) -> Callable[P, T]:
    """Run a kernel in threads of our own, as many as PyTorch may use, if it gets many numbers on a CPU.

    With gradients, which belong to the caller's thread, and in `torch.compile` and `torch.func` it stays in that.
    """

    @wraps(kernel)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if torch.compiler.is_compiling() or _own.pool is not None or (threads := torch.get_num_threads()) == 1:
            return kernel(*args, **kwargs)
        given = (*args, *kwargs.values())
        numbers = max(map(_numbers, given))
        if numbers < LARGE or not all(map(_may_move, given)) or not _is_plain():
            return kernel(*args, **kwargs)
        threads = min(threads, max(1, numbers // SHARE))
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

        results, once = list[T](), Lock()

        def lead() -> T:
            with once, _modes(*modes):
                if not results:
                    results.append(kernel(*args, **kwargs))
            return results[0]

        future: Future[T] | None = None
        try:
            future = _pool(threads).submit(copy_context().run, lead)
            return future.result()
        except BrokenExecutor:  # no thread could be started
            return kernel(*args, **kwargs)
        except RuntimeError:
            if future is None:  # no further thread could be started, but another may have taken the work
                return lead()
            raise
        finally:
            if future is not None:
                wait([future])  # a Ctrl-C must not leave a kernel behind that goes on to change states

    return run


def of_parts(work: Callable[[slice], T], values: Tensor, *others: Tensor, size: int | None = None) -> list[T]:
    """Return what work gives for parts of the rows of values, in their order.

    With gradients, `torch.compile` and `torch.func`, one part holds all rows.

    Args:
        work: Called with the rows of a part; in a kernel of `in_own_threads` perhaps in another thread.
        values: (M, ...)
        *others: Further tensors that work reads, which may have gradients.
        size: The rows of a part, at most. Default: as many as hold `PART` numbers.
    """
    rows = len(values)
    size = size or max(1, PART.get(values.device.type, OTHER_PART) * rows // max(1, values.numel()))
    if rows <= size or not _is_plain() or not all(map(_may_be_divided, (values, *others))):
        return [work(slice(0, rows))]
    threads = _own.threads if values.is_cpu else 1
    number = -(-rows // (size * threads)) * threads  # the same number of parts for each thread
    bounds = [rows * i // number for i in range(number + 1)]
    waiting = deque(enumerate(slice(start, stop) for start, stop in pairwise(bounds)))
    found: dict[int, T] = {}

    def take_parts() -> None:
        while waiting:
            try:
                place, part = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            found[place] = work(part)

    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def help_out() -> None:
        with _modes(*modes):
            take_parts()

    helpers = list[Future[None]]()
    try:
        if threads > 1 and _own.pool is not None:
            helpers += (_own.pool.submit(help_out) for _ in range(threads - 1))
    except RuntimeError:  # no thread can be started
        pass
    try:
        take_parts()
    finally:
        waiting.clear()
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
    return [found[place] for place in range(number)]


@contextmanager
def _modes(grad: bool, inference: bool) -> Iterator[None]:
    """Take over settings that a thread has for itself."""
    with torch.inference_mode(inference), torch.set_grad_enabled(grad):
        yield


def _numbers(value: Any) -> int:
    numbers = value.numel() if isinstance(value, Tensor) else getattr(value, "size", 0)
    return numbers if isinstance(numbers, int) else 0


def _may_move(value: Any) -> bool:
    """Tell whether another thread can compute with an argument of a kernel."""
    return not isinstance(value, Tensor) or (value.is_cpu and _may_be_divided(value))


def _may_be_divided(values: Tensor) -> bool:
    return type(values) is Tensor and not (values.requires_grad and torch.is_grad_enabled())


def _is_plain() -> bool:
    """Tell whether nothing follows the operations of this thread: no compiler, transform or mode."""
    return not (
        torch.compiler.is_compiling()
        or is_in_torch_dispatch_mode()
        or torch._C._functorch.peek_interpreter_stack() is not None
    )


_pools: dict[int, ThreadPoolExecutor] = {}
"""By number of threads."""
_lock = Lock()


def _pool(number: int) -> ThreadPoolExecutor:
    """Return threads whose operations are not divided."""

    def start() -> None:
        of_process = torch.get_num_threads()
        torch.set_num_threads(1)  # of this thread, but also of those that start later
        repair = Thread(target=torch.set_num_threads, args=(of_process,))
        repair.start()
        repair.join()
        _own.pool, _own.threads = pool, number

    with _lock:
        if number not in _pools:
            pool = ThreadPoolExecutor(number, thread_name_prefix="mpcs_torch", initializer=start)
            _pools[number] = pool
        return _pools[number]


def _forget() -> None:
    """Leave the threads of the parent process behind."""
    global _lock
    _lock = Lock()
    _pools.clear()
    _own.pool, _own.threads = None, 1


os.register_at_fork(after_in_child=_forget)
