"""Sweeps: the same numbers as one by one, nothing run twice, nothing of others replaced."""

from pathlib import Path

import pytest

from mpcs_torch.paper.experiments import seeded_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.folder import run_in_folder, sweep
from mpcs_torch.trainer.result import read_records
from tests.processes.in_this_process import in_this_process
from tests.refused import Refused


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
    found = {config.name: records for config, records in sweep(configs, tmp_path, tmp_path)}
    run_in_folder(short(1), short(1).data.load(tmp_path), tmp_path / "alone")
    assert found["exp01-seed01"] == read_records(tmp_path / "alone" / "records.csv")
    assert found["exp01-seed00"] != found["exp01-seed01"]

    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    whole = tmp_path / "exp01-seed00" / "records.csv"
    cut = tmp_path / "exp01-seed01" / "records.csv"
    written = whole.stat().st_mtime_ns
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:3]))
    for name in ("result.json", "resume.pt"):
        (cut.parent / name).unlink()
    assert {
        config.name: records for config, records in sweep(configs, tmp_path, tmp_path)
    } == found
    assert whole.stat().st_mtime_ns == written

    other = short(1).model_copy(update={"seed": 9})
    with Refused("same_config", raises=ConfigError, keys="seed"):
        list(sweep([other], tmp_path, tmp_path))
    assert read_records(cut) == found["exp01-seed01"]


def test_a_seed_also_splits_the_data_where_they_are_split_here() -> None:
    assert seeded_config("exp02", 7).data.model_extra == {
        "test_fraction": 0.25,
        "split_seed": 7,
    }
    assert seeded_config("exp06", 7).seed == 7
    assert seeded_config("exp06", 7).data.model_extra == {"set": "Chinatown"}
