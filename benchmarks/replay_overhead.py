"""Time replays against their own training and forward passes: what does measuring cost?

Run: MPCS_DATA_ROOT=data python -m benchmarks.replay_overhead
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

from mpcs_torch.cli.console import progress_bar
from mpcs_torch.paper.experiments import experiment_config, finish_run
from mpcs_torch.trainer import loop

TURNS = {"case-study": 150, "exp10": 5}
"""By experiment; an epoch of Exp. 10 takes seconds."""
LIMITS = {"case-study": 1.7, "exp10": 1.15}


class Stopwatch:
    """Adds up the seconds spent inside the functions that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            start = perf_counter()
            result = function(*args, **named)
            self.seconds += perf_counter() - start
            return result

        return timed


def ratio(name: str, data_root: Path) -> float:
    """Return the seconds of a run (all metrics, records, progress bar) per second of its steps and forward passes."""
    config = experiment_config(name, [f"epochs.count={TURNS[name]}"])
    config = config.model_copy(update={"selector": None})  # measuring, not saving
    data = config.data.load(data_root)
    watch = Stopwatch()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(
            loop.TrainingRun, "train_step", watch.around(loop.TrainingRun.train_step)
        ),
        mock.patch.object(
            loop.TrainingRun, "_forward_pass", watch.around(loop.TrainingRun._forward_pass)
        ),
        progress_bar(config.name, config.epochs.count) as bar,
    ):
        start = perf_counter()
        finish_run(config, data, Path(folder), [bar])
        return (perf_counter() - start) / watch.seconds


if __name__ == "__main__":
    for experiment in TURNS:
        measured = ratio(experiment, Path(os.environ.get("MPCS_DATA_ROOT", "data")))
        print(
            f"{experiment}: {measured:.2f} times its own training and forward passes (limit {LIMITS[experiment]})"
        )
