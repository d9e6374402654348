"""Timings that noise spoils least."""

from collections.abc import Callable, Sequence
from time import perf_counter


def quickest(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Seconds of the quickest of some rounds of each call, taken in turns."""
    seconds = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            start = perf_counter()
            call()
            seconds[place] = min(seconds[place], perf_counter() - start)
    return seconds
