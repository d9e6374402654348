"""Run folders: written as the run goes, never lost by accident."""

from pathlib import Path

from mpcs_torch.errors import ExistsError
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import is_finished, run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch
from mpcs_torch.trainer.result import read_records
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


def test_records_hold_every_epoch_at_full_precision(tmp_path: Path) -> None:
    epochs: list[MeasuredEpoch] = []
    run_in_folder(
        toy_config(),
        toy_data(),
        tmp_path / "toy",
        [lambda epoch, state: epochs.append(epoch)],
    )
    records = read_records(tmp_path / "toy" / "records.csv")
    assert records == [epoch.record for epoch in epochs]
    assert tuple(records[0]) == ("epoch", *toy_config().columns)


def test_the_resolved_config_runs_again_to_the_same_records(tmp_path: Path) -> None:
    run_in_folder(toy_config(), toy_data(), tmp_path / "toy")
    again = load_config(tmp_path / "toy" / "config.yaml")
    run_in_folder(again, toy_data(), tmp_path / "again")
    assert (tmp_path / "toy" / "records.csv").read_bytes() == (
        tmp_path / "again" / "records.csv"
    ).read_bytes()


def test_a_run_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    run_in_folder(toy_config(), toy_data(), tmp_path)
    before = (tmp_path / "records.csv").read_bytes()
    with Refused("has_run", str(tmp_path), raises=ExistsError):
        run_in_folder(toy_config(seed=6), toy_data(), tmp_path)
    assert (tmp_path / "records.csv").read_bytes() == before
    foreign = tmp_path / "notes.txt"
    foreign.write_text("mine")
    run_in_folder(toy_config(seed=6), toy_data(), tmp_path, overwrite=True)
    assert (tmp_path / "records.csv").read_bytes() != before
    assert foreign.read_text() == "mine"


def test_a_config_that_cannot_run_replaces_nothing(tmp_path: Path) -> None:
    run_in_folder(toy_config(), toy_data(), tmp_path)
    before = (tmp_path / "records.csv").read_bytes()
    with Refused("does_not_fit", "toy: score", raises=ConfigError):
        run_in_folder(toy_config(score={"k": 9}), toy_data(), tmp_path, overwrite=True)
    assert (tmp_path / "records.csv").read_bytes() == before


def test_checkpoints_alone_are_a_run_too(tmp_path: Path) -> None:
    run_in_folder(
        toy_config(selector={"by": "mpcs", "keep_best_by": []}), toy_data(), tmp_path
    )
    for name in ("config.yaml", "records.csv"):
        (tmp_path / name).unlink()
    with Refused("has_run", str(tmp_path), raises=ExistsError):
        run_in_folder(toy_config(), toy_data(), tmp_path)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_a_finished_run_is_the_result_of_its_own_config_alone(tmp_path: Path) -> None:
    assert not is_finished(toy_config(), tmp_path)
    run_in_folder(toy_config(), toy_data(), tmp_path)
    assert is_finished(toy_config(), tmp_path)
    with Refused("same_config", "toy:", raises=ConfigError, keys="seed"):
        is_finished(toy_config(seed=6), tmp_path)
