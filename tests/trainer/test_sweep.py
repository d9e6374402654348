"""Sweeps: the same numbers as one by one, nothing run twice, nothing of others replaced."""

import os
import time
from pathlib import Path

import pytest
import torch

from mpcs_torch.paper.experiments import seeded_config
from mpcs_torch.processes.pool import run_in_processes
from mpcs_torch.trainer.config import RunConfig
from mpcs_torch.trainer.folder import RunExistsError, run_in_folder
from mpcs_torch.trainer.records import read_records
from mpcs_torch.trainer.sweep import sweep


def short(seed: int) -> RunConfig:
    config = seeded_config("exp01", seed)
    return config.model_copy(update={"epochs": config.epochs.model_copy(update={"count": 4})})


def test_a_sweep_gives_the_records_of_its_runs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    configs = [short(0), short(1)]
    found = {config.name: records for config, records in sweep(configs, tmp_path, tmp_path)}
    run_in_folder(short(1), short(1).data.load(tmp_path), tmp_path / "alone")
    assert found["exp01-seed01"] == read_records(tmp_path / "alone" / "records.csv")
    assert found["exp01-seed00"] != found["exp01-seed01"]

    whole, cut = tmp_path / "exp01-seed00" / "records.csv", tmp_path / "exp01-seed01" / "records.csv"
    written = whole.stat().st_mtime_ns
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:3]))
    assert {config.name: records for config, records in sweep(configs, tmp_path, tmp_path)} == found
    assert whole.stat().st_mtime_ns == written

    other = short(1).model_copy(update={"seed": 9})
    with pytest.raises(RunExistsError, match=r"exp01-seed01 already holds a run"):
        list(sweep([other], tmp_path, tmp_path))
    assert read_records(cut) == found["exp01-seed01"]


def test_a_seed_also_splits_the_data_where_they_are_split_here() -> None:
    assert seeded_config("exp02", 7).data.model_extra == {"test_fraction": 0.25, "split_seed": 7}
    assert seeded_config("exp06", 7).seed == 7
    assert seeded_config("exp06", 7).data.model_extra == {"set": "Chinatown"}


def _fail_or_mark(task: tuple[int, Path]) -> None:
    number, folder = task
    if number == 0:
        raise ValueError("the first task fails")
    time.sleep(0.2)
    (folder / str(number)).touch()


def test_an_error_stops_what_has_not_begun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the first task fails"):
        list(run_in_processes(_fail_or_mark, [(number, tmp_path) for number in range(40)]))
    assert len(list(tmp_path.iterdir())) < 30


def _process_and_threads(task: int) -> tuple[int, int]:
    return os.getpid(), torch.get_num_threads()


def test_there_is_a_process_with_one_thread_for_each_core_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {pid}, raising=False)  # one core
    (found,) = {seen for _, seen in run_in_processes(_process_and_threads, range(5))}
    process, threads = found
    assert process != os.getpid()
    assert threads == 1
