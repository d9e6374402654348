"""Runs that stop before their last epoch: by patience or by a hook, once, and for a reason that is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.errors import ExistsError
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.trainer.checkpoints import selector_hook
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.folder import is_finished, sweep
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.result import read_records, read_result
from tests.processes.in_this_process import in_this_process
from tests.refused import Refused
from tests.trainer.toy import contents, cut_off, toy_config, toy_data, train

NOISY = {"batch_size": 3, "learning_rate": 0.3, "save_seconds": 0}
"""Scores that go up and down."""


def patient(patience: int | None, **changed: Any) -> RunConfig:
    selector = {"by": "cross_entropy", "patience": patience, **changed.pop("selector", {})}
    return toy_config(
        **{"training": NOISY, "epochs": {"count": 40}, "selector": selector, **changed}
    )


def stop_of(values: Sequence[float], patience: int) -> int:
    """Early stopping as everyone writes it: the number of epochs that are trained."""
    best, waited = float("inf"), 0
    for number, value in enumerate(values, start=1):
        best, waited = (value, 0) if value < best else (best, waited + 1)
        if waited >= patience:
            return number
    return len(values)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_patience_stops_a_run_where_early_stopping_would(
    patience: int, tmp_path: Path
) -> None:
    train(patient(None), tmp_path / "whole")
    whole = read_records(tmp_path / "whole" / "records.csv")
    train(patient(patience), tmp_path / "stopped")
    records = read_records(tmp_path / "stopped" / "records.csv")
    end = stop_of([record["cross_entropy"] for record in whole], patience)
    assert records == whole[:end]
    assert patience < end < 40, "else nothing is tested"
    result = read_result(tmp_path / "stopped")
    assert result.epoch == end - patience
    rule = f"the best epoch by the selector's rule is still {end - patience} (selector.patience: {patience})"
    assert result.stopped == f"after epoch {end} of 40: {rule}"
    assert read_result(tmp_path / "whole").stopped is None


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_run_that_stops_leaves_the_same_bytes_after_a_kill(
    epoch: int, tmp_path: Path
) -> None:
    whole, cut = train(patient(5), tmp_path / "whole"), tmp_path / "cut"
    cut_off(patient(5), cut, epoch, resume=True)
    assert train(patient(5), cut, resume=True) == whole
    (cut / "result.json").unlink()  # killed between the stop and the result
    assert train(patient(5), cut, resume=True) == whole


def test_epochs_beyond_the_saved_state_do_not_stop_a_run_earlier(tmp_path: Path) -> None:
    epochs = [
        MeasuredEpoch(number, {"accuracy": 0.5, "cross_entropy": loss}, torch.empty(0))
        for number, loss in enumerate([0.9, 0.4, 0.5, 0.6, 0.7], start=1)
    ]
    rule = SelectionRule("cross_entropy", {"cross_entropy": "min"})
    state = TrainingRun(toy_config(), toy_data())
    hook = selector_hook(CheckpointSelector(tmp_path, rule, patience=3))
    answers = [hook(epoch, state) for epoch in epochs]
    assert answers == [None] * 4 + [
        "the best epoch by the selector's rule is still 2 (selector.patience: 3)"
    ]
    again = selector_hook(CheckpointSelector(tmp_path, rule, patience=3, resume=True))
    assert [again(epoch, state) for epoch in epochs[2:]] == answers[2:]


def test_a_run_that_stopped_is_finished_and_more_epochs_do_not_change_it(
    tmp_path: Path,
) -> None:
    before = train(patient(2), tmp_path)
    assert is_finished(patient(2), tmp_path)
    with Refused("stopped_run", str(tmp_path), raises=ExistsError):
        is_finished(patient(2, epochs={"count": 80}), tmp_path)
    assert contents(tmp_path) == before


def stop_at(number: int, answer: Any = "enough") -> Any:
    def stop(epoch: MeasuredEpoch, state: TrainingRun) -> Any:
        return answer if epoch.number == number else None

    return stop


@pytest.mark.parametrize("count", [3, 9])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_hook_that_gives_a_reason_stops_the_run_after_all_hooks(
    when: str, count: int, tmp_path: Path
) -> None:
    seen: list[int] = []
    hooks = stop_at(3), stop_at(3, "later"), lambda epoch, state: seen.append(epoch.number)
    train(toy_config(epochs={"count": count, "when": when}), tmp_path, *hooks)
    assert seen == [1, 2, 3]
    assert len(read_records(tmp_path / "records.csv")) == 3
    result = read_result(tmp_path)
    assert (result.stopped, result.epoch) == (f"after epoch 3 of {count}: enough", 3)


@pytest.mark.parametrize("answer", [True, 0, "", ["enough"]])
def test_a_hook_that_gives_anything_else_is_refused(answer: object) -> None:
    run = TrainingRun(toy_config(), toy_data())
    with Refused("reason_to_stop", "a hook"):
        run.train([stop_at(2, answer)])


def test_a_sweep_does_not_repeat_runs_that_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    config = patient(2, data={"name": "iris"}, score={"k": 3, "t": 20})
    [(_, records)] = sweep([config], tmp_path, tmp_path)
    before = contents(tmp_path / "toy")
    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_folder", None)
    assert [*sweep([config], tmp_path, tmp_path)] == [(config, records)]
    assert contents(tmp_path / "toy") == before
    assert len(records) < 40
