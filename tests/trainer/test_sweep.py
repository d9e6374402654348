"""Sweeps: the same numbers as one by one, nothing run twice, nothing of others replaced."""

from pathlib import Path

import pytest

from mpcs_torch.paper.experiments import seeded_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.folder import run_in_folder, sweep
from mpcs_torch.trainer.result import read_records
from tests.processes.in_this_process import in_this_process
from tests.refused import Refused
from tests.trainer.toy import contents


def short(seed: int) -> RunConfig:
    config = seeded_config("exp01", seed)
    return config.model_copy(
        update={"epochs": config.epochs.model_copy(update={"count": 4})}
    )


@pytest.mark.slow
def test_a_sweep_gives_the_records_of_its_runs_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [short(0), short(1)]
    out = tmp_path / "runs"
    records = {config.name: rows for config, rows in sweep(configs, tmp_path, out)}
    run_in_folder(short(1), short(1).data.load(tmp_path), tmp_path / "alone")
    assert records["exp01-seed01"] == read_records(tmp_path / "alone" / "records.csv")
    assert records["exp01-seed00"] != records["exp01-seed01"]

    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    before, stopped = contents(out), out / "exp01-seed01"
    rows = (stopped / "records.csv").read_text().splitlines(keepends=True)
    (stopped / "records.csv").write_text("".join(rows[:3]))
    for name in ("result.json", "resume.pt"):
        (stopped / name).unlink()
    again = {config.name: rows for config, rows in sweep(configs, tmp_path, out)}
    assert again == records
    other = short(1).model_copy(update={"seed": 9})
    with Refused("same_config", raises=ConfigError, keys="seed"):
        list(sweep([other], tmp_path, out))
    assert contents(out) == before


def test_a_seed_also_splits_the_data_where_they_are_split_here() -> None:
    config = seeded_config("exp02", 7)
    assert config.data.model_extra == {"test_fraction": 0.25, "split_seed": 7}
    config = seeded_config("exp06", 7)
    assert (config.seed, config.data.model_extra) == (7, {"set": "Chinatown"})
