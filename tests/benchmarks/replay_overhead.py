"""What does measuring cost? The case-study replay over its own training and forward passes.

Run: MPCS_DATA_ROOT=data python -m tests.benchmarks.replay_overhead
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

from mpcs_torch.cli.progress import progress_bar
from mpcs_torch.paper.experiments import experiment_config, finish_run
from mpcs_torch.trainer import evaluation, loop

LIMIT = 1.5


class Stopwatch:
    """Adds up the seconds spent inside the functions that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            start = perf_counter()
            result = function(*args)
            self.seconds += perf_counter() - start
            return result

        return timed


def ratio(data_root: Path) -> float:
    """Seconds of the whole run (150 turns, all metrics, records, progress bar) per second of its steps and forwards."""
    config = experiment_config("case-study").model_copy(update={"selector": None})  # measuring, not saving
    data = config.data.load(data_root)
    watch = Stopwatch()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(loop, "train_step", watch.around(loop.train_step)),
        mock.patch.object(evaluation, "forward_pass", watch.around(evaluation.forward_pass)),
        progress_bar(config.name, config.turns.count) as bar,
    ):
        start = perf_counter()
        finish_run(config, data, Path(folder), [bar])
        return (perf_counter() - start) / watch.seconds


if __name__ == "__main__":
    measured = ratio(Path(os.environ.get("MPCS_DATA_ROOT", "data")))
    print(f"case-study replay: {measured:.2f} times its own training and forward passes (limit {LIMIT})")
