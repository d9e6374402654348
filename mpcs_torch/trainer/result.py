"""Write and read the records (metrics of each epoch) of a run, measure its result, and read finished runs."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, shown
from mpcs_torch.functional.measure import Direction
from mpcs_torch.io.atomic_files import open_lines, replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.selection import Epoch
from mpcs_torch.tables import Table, in_table
from mpcs_torch.trainer.checkpoints import FOLDER, open_selector
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.loop import Hook, MeasuredEpoch, TrainingRun

CONFIG, RECORDS, FILE = "config.yaml", "records.csv", "result.json"
"""The names of the files of the config, the records and the result in the folder of a run."""
Record = dict[str, float]
"""The metrics of an epoch, by column of the records file."""


@contextmanager
def record_writer(
    path: Path, columns: Sequence[str], *, append: bool = False
) -> Iterator[Hook]:
    """Yield a hook that writes a row to the CSV file ``path`` immediately after each epoch."""
    with open_lines(path, append=append) as file:
        writer = csv.DictWriter(file, ["epoch", *columns], lineterminator="\n")
        if not append:
            writer.writeheader()

        def write(epoch: MeasuredEpoch, run: TrainingRun) -> None:  # noqa: ARG001  # a Hook
            writer.writerow(epoch.record)

        yield write


def read_records(path: str | Path) -> list[Record]:
    """Return the rows of a records file of a run, or of a published file, which has fewer columns.

    A last line without a newline, from an interrupted run, is ignored, because its last number may be truncated.

    Raises:
        ValueError: If the file is not UTF-8 text, has no header, or has a complete row that lacks a number.
    """
    path = local_path(path, "path")
    try:
        *lines, _ = read_text(path).split("\n")
    except UnicodeDecodeError as error:
        raise InvalidValueError("text_file", f"{path}:", cause=str(error)) from None
    if not lines:
        raise InvalidValueError("complete_line", f"{path}:")
    columns = lines[0].split(",")
    if columns[0] == "turn":  # the name in published records
        columns[0] = "epoch"
    if columns[0] != "epoch" or len(set(columns)) < len(columns):
        raise InvalidValueError("columns_of_records", f"{path}:", columns=columns)
    records = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(",")
        try:
            if len(cells) != len(columns):
                raise InvalidValueError(
                    "columns_of_line", number=len(columns), cells=len(cells)
                )
            record = dict(zip(columns, map(float, cells), strict=True))
            if not record["epoch"].is_integer():
                raise InvalidValueError("epoch_of_line", cell=shown(cells[0]))
        except ValueError as error:
            raise InvalidValueError(
                "caused_by", f"{path}: line {number}:", cause=error
            ) from None
        records.append(record)
    return records


@dataclass(frozen=True)
class RunResult:
    """The result of a run: the epoch whose model is picked, and its metrics."""

    epoch: int
    reason: str
    """The reason why ``epoch`` was picked."""
    values: dict[str, dict[str, float]]
    """The value of each metric of the run, by split: train, validation (if there is one) and test."""
    diverged: bool = False
    """Whether some logits are NaN or infinite, which makes the metrics meaningless."""
    stopped: str | None = None
    """The epoch after which the run stopped early, and the reason; None if the run did not stop early."""

    def table(self) -> Table:
        """Return a table with a row for each metric and a column for each split."""
        rows = []
        for name in self.values["test"]:
            cells = [in_table(of_split[name]) for of_split in self.values.values()]
            rows.append([name, *cells])
        return Table(["metric", *self.values], rows)

    def plain(self) -> dict[str, Any]:
        """Return the content of the result file: all fields by name, but not ``stopped`` if it is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def write(self, folder: Path) -> None:
        """Write the result file to ``folder``."""
        replace_text(folder / FILE, json.dumps(self.plain(), indent=1) + "\n")


def read_result(folder: str | Path) -> RunResult:
    """Read the result file in ``folder``; raise a ValueError if the file is missing or invalid."""
    folder = local_path(folder, "folder")
    path = folder / FILE
    if not path.is_file():
        raise InvalidValueError("finished_run", str(folder), file=FILE, folder=str(folder))
    try:
        return TypeAdapter(RunResult).validate_json(read_text(path))
    except ValueError as error:
        cause = shown(f"{type(error).__name__}: {error}")
        raise InvalidValueError("result_of_run", str(path), cause=cause) from None


def measure_result(run: TrainingRun, selector: CheckpointSelector | None) -> RunResult:
    """Measure the model that ``selector`` (in rank 0) picks on all splits; then restore the last epoch's weights."""
    world = run.world
    model = run.measured
    last = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}
    # Buffers (of batch norm, for example) differ between processes, so rank 0 sends its weights to the others.
    epoch, reason, picked = world.from_first(lambda: _pick(run, selector, last))
    model.load_state_dict(picked)
    with run.running():
        measured = {name: run.measure(split) for name, split in run.data.splits.items()}
    model.load_state_dict(last)
    values = {name: measurement.values for name, measurement in measured.items()}
    are_finite = [bool(one.logits.isfinite().all()) for one in measured.values()]
    diverged = world.gather(lambda: not all(are_finite))
    stopped = run.stopped
    if stopped:
        stopped = f"after epoch {run.epochs} of {run.config.epochs.count}: {stopped}"
    return RunResult(epoch, reason, values, any(diverged), stopped)


def _pick(
    run: TrainingRun, selector: CheckpointSelector | None, last: dict[str, Any]
) -> tuple[int, str, dict[str, Any]]:
    """Return the picked epoch, the reason and the weights. Without a pick by ``selector``, the weights are ``last``."""
    if selector is None:
        return run.epochs, "the last epoch, because the run has no selector", last
    if selector.best is None:
        reason = "the last epoch, because no epoch is within the limits of the selector"
        return run.epochs, reason, last
    where = f" on {run.config.epochs.samples} data"
    reason = why_picked(selector.rule, selector.epochs, selector.best, where)
    number = selector.best.number
    return number, reason, selector.load(number)["model"]


def rule_in_words(rule: SelectionRule) -> str:
    """Return, for example, "lowest missed, accuracy within 0.01 of its best"."""
    return ", ".join([_extreme(rule), *_limits(rule)])


def why_picked(
    rule: SelectionRule, epochs: Sequence[Epoch], best: Epoch, where: str = ""
) -> str:
    """Return why ``rule`` picks ``best``, the best of ``epochs`` that has a checkpoint.

    ``where``, such as " on validation data", names the data on which the epochs were measured.
    """
    limits = _limits(rule)
    among = f" of {len(epochs)} epochs"
    if limits:
        among = f" among epochs with {', '.join(limits)}"
    missing = sum(isnan(epoch.values[rule.by]) for epoch in epochs)
    if missing:
        among += f", {missing} of which gave NaN"
    reason = f"{_extreme(rule)} ({best.values[rule.by]:.6g}){where}{among}"
    pick = rule.ranking(epochs)[0]
    if pick is not best:
        reason += f"; epoch {pick.number} ({pick.values[rule.by]:.6g}) is better, but its checkpoint is gone"
    return reason


def no_pick(rule: SelectionRule, epochs: Sequence[Epoch]) -> str:
    """Return why ``rule`` picks none of ``epochs``."""
    if all(isnan(epoch.values[rule.by]) for epoch in epochs):
        return f"No epoch is picked: {rule.by} is NaN in each epoch."
    return "No epoch is within the limits."


def _extreme(rule: SelectionRule) -> str:
    word = "lowest" if rule.directions[rule.by] == "min" else "highest"
    return f"{word} {rule.by}"


def _limits(rule: SelectionRule) -> list[str]:
    limits = [f"{name} within {slack:g} of its best" for name, slack in rule.within.items()]
    limits += [f"{name} at most {limit:g}" for name, limit in rule.at_most.items()]
    return limits + [f"{name} at least {limit:g}" for name, limit in rule.at_least.items()]


def first_best(
    records: Sequence[Record], directions: Mapping[str, Direction]
) -> dict[str, int]:
    """Return the number of the first best epoch by each metric in ``directions``; none if it is NaN in all."""
    if not directions:
        return {}
    # A rule is by one metric, but what each metric picks does not depend on it: take the first.
    rule = SelectionRule(next(iter(directions)), directions)
    picked = rule.picked_by_each(
        [Epoch(int(record["epoch"]), record) for record in records]
    )
    return {name: epoch.number for name, epoch in picked.items()}


@dataclass(frozen=True)
class TrainedRun:
    """A finished run, read from its folder, with its data."""

    folder: Path
    config: RunConfig
    records: list[Record]
    result: RunResult
    run: TrainingRun
    """The run as before training, with its data."""
    selector: CheckpointSelector | None
    """The selector, which reads checkpoints; None if the run has no checkpoints."""

    @property
    def class_names(self) -> list[str]:
        """The names of the classes in index order."""
        return list(self.run.data.class_names)

    @property
    def concern(self) -> ConcernSpec:
        """The cost of each error."""
        return self.config.score.concern.spec(self.class_names)

    @property
    def test(self) -> Split:
        """The test samples."""
        return self.run.data.test

    def picks(self) -> dict[str, int]:
        """Return the first best epoch of each metric, by name; metrics without a known direction are left out."""
        directions = {
            name: way
            for name, way in self.config.directions.items()
            if name in self.records[0]
        }
        return first_best(self.records, directions)

    def logits(self, split: Split, epoch: int) -> Tensor | None:
        """Return the logits (N, C) of the model of ``epoch`` on ``split``; None if ``epoch`` has no checkpoint."""
        if self.selector is None:
            return None
        saved = [one.number for one in self.selector.epochs if one.file is not None]
        if epoch not in saved:
            return None
        try:
            self.run.measured.load_state_dict(self.selector.load(epoch)["model"])
        except (RuntimeError, KeyError, TypeError) as error:
            # The code of the model has changed, for example.
            place = f"{self.folder}:"
            line = str(error).splitlines()[0]
            raise InvalidValueError(
                "fitting_checkpoint", place, epoch=epoch, cause=line
            ) from None
        with self.run.running():
            return self.run.logits(split).cpu()


def open_trained(
    folder: str | Path, data: str | Path | DataSplits, *, trust_code: bool = True
) -> TrainedRun:
    """Read the finished run in ``folder``, and import custom code; ``data`` is its data set, or the data root.

    Raises:
        MpcsError: If a file of the run, or a data set, is missing or invalid.
        UntrustedCodeError: If ``trust_code`` is false, and the run names code.
    """
    folder = local_path(folder, "folder")
    result = read_result(folder)
    config = load_config(folder / CONFIG, trust_code=trust_code)
    records = read_records(folder / RECORDS)
    if not records:
        raise InvalidValueError("has_epoch", f"{folder / RECORDS}:")
    if not isinstance(data, DataSplits):
        data = config.data.load(data)
    run = TrainingRun(config, data)
    selector = open_selector(config, folder) if (folder / FOLDER).is_dir() else None
    return TrainedRun(folder, run.config, records, result, run, selector)
