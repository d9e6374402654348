"""The result of a run: the epoch that was picked, why, and what its model measures on each split."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.untrusted_files import read_limited
from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.tables import Table
from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.evaluation import Evaluator
from mpcs_torch.trainer.loop import PreparedRun

FILE = "result.json"
"""In the run's folder."""
MAX_BYTES = 10_000_000
"""Thousands of metrics."""


class ResultError(MpcsError, ValueError):
    """A ``result.json`` that is missing or breaks its rules."""


@dataclass(frozen=True)
class RunResult:
    """The model that a run ends with."""

    epoch: int
    reason: str
    """Why this epoch was picked."""
    values: dict[str, dict[str, float]]
    """All metrics of the run by split: train, validation (if there is one) and test."""
    diverged: bool = False
    """Whether the model gives NaN or infinite logits, so that its metrics mean nothing."""
    stopped: str | None = None
    """Why the run stopped before its last epoch, and after which one; None if it did not."""

    def table(self) -> Table:
        """Return a row for each metric and a column for each split."""
        names = list(next(iter(self.values.values())))
        rows = [[name, *(f"{values[name]:.6g}" for values in self.values.values())] for name in names]
        return Table(["metric", *self.values], rows)

    def plain(self) -> dict[str, Any]:
        """Return what the file holds: ``stopped`` only if the run did."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def write(self, folder: Path) -> None:
        """Write the result to the run's folder."""
        replace_text(folder / FILE, json.dumps(self.plain(), indent=1) + "\n")


def seeds_table(results: Mapping[int, RunResult]) -> Table:
    """Return the metrics on test data of runs with several seeds, a row for each, and their means."""
    tests = [result.values["test"] for result in results.values()]
    rows = [
        [str(seed), str(result.epoch), *(f"{value:.6g}" for value in test.values())]
        for (seed, result), test in zip(results.items(), tests, strict=True)
    ]
    means = [f"{fmean(test[name] for test in tests):.6g}" for name in tests[0]]
    return Table(["seed", "epoch", *tests[0]], [*rows, ["mean", "", *means]])


def read_result(folder: Path) -> RunResult:
    """Read the result of a finished run.

    Raises:
        ResultError: If the run has not finished, or its ``result.json`` is not one.
    """
    path = folder / FILE
    if not path.is_file():
        raise ResultError(f"{folder} holds no {FILE}: finish the run first, `mpcs train --resume {folder}`")
    try:
        return TypeAdapter(RunResult).validate_json(read_limited(path, MAX_BYTES))
    except ValueError as error:
        raise ResultError(f"{path} is not the result of a run: {shown(f'{type(error).__name__}: {error}')}") from None


def measure_result(run: PreparedRun, selector: CheckpointSelector | None) -> RunResult:
    """Measure the picked checkpoint on every split; the model itself keeps its last weights.

    Without a selector, or where no epoch keeps to its limits, the last epoch is picked. Of several processes, the first
    one has the selector.
    """
    world, model = run.state.world, run.state.measured
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    # Buffers, such as those of batch norm, differ between processes; so do their devices.
    last = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    epoch, reason, picked = world.from_first(lambda: _pick(run, selector, last))
    model.load_state_dict(picked)
    splits = {"train": run.data.train, "validation": run.data.validation, "test": run.data.test}
    with run.running():
        measured = {name: evaluator_of(run, split)(model) for name, split in splits.items() if split is not None}
    model.load_state_dict(own)
    values = {name: evaluation.values for name, evaluation in measured.items()}
    diverged = not all(evaluation.logits.isfinite().all() for evaluation in measured.values())
    stopped = run.state.stopped and f"after epoch {run.state.epochs} of {run.config.epochs.count}: {run.state.stopped}"
    return RunResult(epoch, reason, values, any(world.gather(lambda: diverged)), stopped)


def _pick(
    run: PreparedRun, selector: CheckpointSelector | None, last: dict[str, Any]
) -> tuple[int, str, dict[str, Any]]:
    """Return the picked epoch, why it was picked, and its model; the last one if there is no other."""
    if selector is None:
        return run.state.epochs, "the last epoch, because the run has no selector", last
    if selector.best is None:
        return run.state.epochs, "the last epoch, because no epoch keeps to the selector's limits", last
    rule = selector.rule
    extreme = "lowest" if rule.directions[rule.by] == "min" else "highest"
    limits = [f"{name} within {slack:g} of its best" for name, slack in rule.within.items()]
    limits += [f"{name} at most {limit:g}" for name, limit in rule.at_most.items()]
    limits += [f"{name} at least {limit:g}" for name, limit in rule.at_least.items()]
    among = f" among epochs with {', '.join(limits)}" if limits else f" of {run.state.epochs} epochs"
    missing = sum(epoch.values[rule.by] != epoch.values[rule.by] for epoch in selector.epochs)
    among += f", {missing} of which gave NaN" if missing else ""
    reason = f"{extreme} {rule.by} ({selector.best.values[rule.by]:.6g}) on {run.config.epochs.samples} data{among}"
    if (pick := rule.ranking(selector.epochs)[0]) is not selector.best:
        reason += f"; epoch {pick.number} ({pick.values[rule.by]:.6g}) is better, but its checkpoint is gone"
    return selector.best.number, reason, selector.load(selector.best.number)["model"]


def evaluator_of(run: PreparedRun, split: Split) -> Evaluator:
    """Return what measures a model with all metrics of a run on a split."""
    return replace(run.evaluator, split=split, batch_size=min(len(split.labels), run.evaluator.batch_size))
