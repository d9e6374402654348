"""Random histories of metrics: whatever is done to one, it has the value of a fresh metric that got the good batches.

``python -m tests.metrics.histories 1000`` runs this number of them for every metric.
"""

import copy
import pickle
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tests.metrics.case import Batch, MetricCase
from tests.metrics.cases import BY_NAME, values_of

MAX_STEPS = 60
MICROSECONDS = 300
"""A signal comes within this time after a step has begun."""


class History:
    """A metric that lives through random steps, and the good batches that count in it."""

    def __init__(self, case: MetricCase, seed: int) -> None:
        self.case, self.draw = case, random.Random(seed)
        self.metric, self.good = case.make(), list[Batch]()
        self.seen = list[dict[str, Any]]()

    def run(self) -> None:
        """Take up to 60 steps, and compare the value after each of them with that of a fresh metric at the end."""
        steps: list[Callable[[], None]] = [
            self.update,
            self.update,
            self.forward,
            self.be_refused,
            self.be_refused,
        ]
        steps += [
            self.clone,
            self.pickle,
            self.save_and_load,
            self.merge,
            self.move,
            self.sync,
            self.compute,
        ]
        for _ in range(self.draw.randint(1, MAX_STEPS)):
            if self.draw.random() < 0.03:
                self.reset()
            else:
                self.draw.choice(steps)()
            assert self.metric.update_count == self.metric.batch_count == len(self.good)
        self.compare()

    def batch(self) -> Batch:
        return self.case.batches.draw(
            self.draw.choice([1, 2, 5, 17]), self.draw.randrange(1000)
        )

    def update(self) -> None:
        self.add(lambda batch: self.metric.update(*batch))

    def forward(self) -> None:
        self.add(lambda batch: self.metric(*batch))

    def add(self, step: Callable[[Batch], object]) -> None:
        batch = self.batch()
        with self.reads():
            step(batch)
        self.good.append(batch)

    def be_refused(self) -> None:
        with self.reads(), pytest.raises(ValueError, match="but sample 1 has"):
            self.draw.choice([self.metric.update, self.metric])(*self.case.batches.bad)

    def clone(self) -> None:
        self.metric = self.draw.choice(
            [self.metric.clone(), copy.deepcopy(self.metric), copy.copy(self.metric)]
        )

    def pickle(self) -> None:
        self.metric = pickle.loads(pickle.dumps(self.metric))

    def save_and_load(self) -> None:
        self.metric.persistent(True)
        saved, self.metric = self.metric.state_dict(), self.case.make()
        self.metric.load_state_dict(saved)

    def merge(self) -> None:
        other, batch = self.case.make(), self.batch()
        other.update(*batch)
        with self.reads():
            self.metric.merge_state(self.draw.choice([other, other.metric_state]))
        self.good.append(batch)

    def move(self) -> None:
        self.metric = self.draw.choice(
            [self.metric.to("cpu"), self.metric.half(), self.metric.set_dtype(torch.half)]
        )

    def sync(self) -> None:
        once = self.draw.choice(["unsync", "reset", "state_dict"])
        self.metric.sync(
            dist_sync_fn=lambda state, group=None: [state, state],
            distributed_available=lambda: True,
        )
        assert self.metric.batch_count == 2 * len(self.good)
        if once == "reset":
            self.metric.reset()
            self.good = []
            return
        self.metric.state_dict()
        self.metric.unsync()

    def reset(self) -> None:
        with self.reads():
            self.metric.reset()
        self.good = []

    def compute(self) -> None:
        if self.good:
            self.metric.compute()

    @contextmanager
    def reads(self) -> Iterator[None]:
        """Read the states in a signal handler meanwhile, which sees them as they were before or are after the step."""
        before, self.seen = self.states(), []
        signal.signal(signal.SIGALRM, lambda *_: self.seen.append(self.states()))
        signal.setitimer(signal.ITIMER_REAL, self.draw.randint(1, MICROSECONDS) / 1e6)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert all(states in (before, self.states()) for states in self.seen)

    def states(self) -> dict[str, list[bytes]]:
        states = self.metric.metric_state.items()
        return {
            name: [part.numpy().tobytes() for part in (s if isinstance(s, list) else [s])]
            for name, s in states
        }

    def compare(self) -> None:
        fresh = self.case.make()
        for batch in self.good:
            fresh.update(*batch)
        if self.good:
            expected = values_of(fresh.compute())
            assert values_of(self.metric.compute()) == pytest.approx(
                expected, rel=1e-9, abs=1e-12, nan_ok=True
            )


def main() -> None:
    """Run histories of every metric."""
    number = int(sys.argv[1])
    warnings.simplefilter("ignore")
    for name, case in BY_NAME.items():
        for seed in range(number):
            History(case, seed).run()
        print(f"{name}: {number} histories, no difference, no batch lost", flush=True)


if __name__ == "__main__":
    main()
