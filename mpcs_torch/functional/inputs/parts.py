"""Work on rows in parts that fit the cache of a CPU core, one thread for each part.

PyTorch divides each operation between threads, which wait for each other at its end. A kernel of many small operations
waits as often, and for long where other processes keep a core busy. Here each thread takes part after part on its own.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, wraps
from itertools import pairwise
from threading import Barrier, local
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

P = ParamSpec("P")
T = TypeVar("T")

PART = {"cpu": 2**17, "cuda": 2**26}
"""The number of scores that are worked on at once: what fits the cache of a core, or keeps a GPU busy."""
OTHER_PART = 2**22
"""That on other devices."""


class _Caller(local):
    threads = 0
    """The threads that the caller of a kernel may use; 0 outside of kernels."""


_caller = _Caller()


def in_own_threads(kernel: Callable[P, T]) -> Callable[P, T]:
    """Let a kernel divide its rows, by `of_parts`, instead of letting PyTorch divide its operations.

    With gradients, for which `of_parts` divides nothing, and in `torch.compile`, PyTorch does.
    """

    @wraps(kernel)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if torch.compiler.is_compiling() or (threads := torch.get_num_threads()) == 1:
            return kernel(*args, **kwargs)
        if torch.is_grad_enabled() and any(isinstance(value, Tensor) and value.requires_grad for value in args):
            return kernel(*args, **kwargs)
        _caller.threads = threads
        torch.set_num_threads(1)  # of this thread
        try:
            return kernel(*args, **kwargs)
        finally:
            torch.set_num_threads(threads)
            _caller.threads = 0

    return run


def of_parts(work: Callable[[slice], T], values: Tensor, *others: Tensor, size: int | None = None) -> list[T]:
    """Return what work gives for parts of the rows of values, in their order.

    With gradients, `torch.compile` and `torch.func`, one part holds all rows.

    Args:
        work: Called with the rows of a part; on a CPU perhaps in another thread, without gradients.
        values: (M, ...)
        *others: Further tensors that work reads, which may have gradients.
        size: The rows of a part, at most. Default: as many as hold `PART` numbers.
    """
    rows = len(values)
    size = size or max(1, PART.get(values.device.type, OTHER_PART) * rows // max(1, values.numel()))
    threads = max(1, _caller.threads) if values.is_cpu else 1
    if rows * threads <= size or not all(map(_can_be_divided, (values, *others))):
        return [work(slice(0, rows))]
    number = -(-rows // (size * threads)) * threads  # the same number of parts for each thread
    parts = [slice(start, stop) for start, stop in pairwise(rows * i // number for i in range(number + 1))]
    if threads == 1:
        return [work(part) for part in parts]
    found: dict[int, T] = {}
    waiting = deque(enumerate(parts))

    def take_parts() -> None:
        while waiting:
            try:
                place, part = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            found[place] = work(part)

    is_inference = torch.is_inference_mode_enabled()

    def help_out() -> None:
        with torch.inference_mode() if is_inference else torch.no_grad():  # both are settings of a thread
            take_parts()

    helpers = [_threads(threads - 1).submit(help_out) for _ in range(threads - 1)]
    try:
        take_parts()
    finally:
        waiting.clear()
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
    return [found[place] for place in range(len(parts))]


def _can_be_divided(values: Tensor) -> bool:
    return (
        type(values) is Tensor
        and not torch.compiler.is_compiling()
        and not (values.requires_grad and torch.is_grad_enabled())
        and not is_in_torch_dispatch_mode()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


@lru_cache(maxsize=1)
def _threads(number: int) -> ThreadPoolExecutor:
    """Return threads whose operations are not divided further."""
    together = Barrier(number)

    def start() -> None:
        torch.get_num_threads()  # reads the number of the process, which would otherwise be read later
        torch.set_num_threads(1)
        together.wait()

    pool = ThreadPoolExecutor(number, thread_name_prefix="mpcs_torch", initializer=start)
    for _ in range(number):
        pool.submit(int)
    pool.submit(int).result()
    return pool


os.register_at_fork(after_in_child=_threads.cache_clear)
