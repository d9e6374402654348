"""Run folders: written as the run goes, never lost by accident."""

from pathlib import Path

from mpcs_torch.errors import ExistsError
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import is_finished
from mpcs_torch.trainer.loop import MeasuredEpoch
from mpcs_torch.trainer.result import read_records
from tests.refused import Refused
from tests.trainer.toy import contents, toy_config, train


def test_records_hold_every_epoch_at_full_precision(tmp_path: Path) -> None:
    epochs: list[MeasuredEpoch] = []
    train(toy_config(), tmp_path, lambda epoch, state: epochs.append(epoch))
    records = read_records(tmp_path / "records.csv")
    assert records == [epoch.record for epoch in epochs]
    assert tuple(records[0]) == ("epoch", *toy_config().columns)


def test_the_resolved_config_runs_again_to_the_same_files(tmp_path: Path) -> None:
    files = train(toy_config(), tmp_path / "toy")
    config = load_config(tmp_path / "toy" / "config.yaml")
    assert train(config, tmp_path / "again") == files


def test_a_run_is_replaced_only_when_told_to_and_by_a_config_that_can_run(
    tmp_path: Path,
) -> None:
    before = train(toy_config(), tmp_path)
    with Refused("has_run", str(tmp_path), raises=ExistsError):
        train(toy_config(seed=6), tmp_path)
    with Refused("does_not_fit", "toy: score", raises=ConfigError):
        train(toy_config(score={"k": 9}), tmp_path, overwrite=True)
    assert contents(tmp_path) == before
    (tmp_path / "notes.txt").write_text("mine")
    after = train(toy_config(seed=6), tmp_path, overwrite=True)
    assert after["records.csv"] != before["records.csv"]
    assert after["notes.txt"] == b"mine"


def test_checkpoints_alone_are_a_run_too(tmp_path: Path) -> None:
    train(toy_config(selector={"by": "mpcs", "keep_best_by": []}), tmp_path)
    for name in ("config.yaml", "records.csv"):
        (tmp_path / name).unlink()
    with Refused("has_run", str(tmp_path), raises=ExistsError):
        train(toy_config(), tmp_path)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_a_finished_run_is_the_result_of_its_own_config_alone(tmp_path: Path) -> None:
    assert not is_finished(toy_config(), tmp_path)
    train(toy_config(), tmp_path)
    assert is_finished(toy_config(), tmp_path)
    with Refused("same_config", "toy:", raises=ConfigError, keys="seed"):
        is_finished(toy_config(seed=6), tmp_path)
