"""A finished run that is trained longer leaves the bytes of a run that was begun so."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.errors import ExistsError
from mpcs_torch.trainer.config.load import changed_keys, dump_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.folder import is_finished
from mpcs_torch.trainer.resume import FILE
from tests.refused import Refused
from tests.trainer.test_resume import SETTINGS, config_of
from tests.trainer.toy import contents, cut_off, train

FOLLOW_COUNT = {"cosine, selector": "scheduler", "ramp": "training.margin_ramp"}
OLDER = Path(__file__).parent / "older_run.yaml"
"""The config that version 0.1.0 wrote before the keys unit and patience."""


def with_count(config: RunConfig, count: int) -> RunConfig:
    return config.model_copy(
        update={"epochs": config.epochs.model_copy(update={"count": count})}
    )


def train_longer(config: RunConfig, folder: Path, count: int) -> dict[str, bytes]:
    assert not is_finished(with_count(config, count), folder)
    return train(with_count(config, count), folder, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS if setting not in FOLLOW_COUNT]
)
def test_a_longer_run_leaves_the_bytes_of_one_that_was_begun_so(
    setting: str, tmp_path: Path
) -> None:
    config, longer = config_of(setting), tmp_path / "longer"
    train(config, longer)
    (longer / "report.html").write_text("of the shorter run")
    train_longer(config, longer, 14)
    whole = train(with_count(config, 20), tmp_path / "whole")
    assert train_longer(config, longer, 20) == whole


def test_a_longer_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    config, longer = config_of("selector, patience"), tmp_path / "longer"
    train(config, longer)
    assert not is_finished(with_count(config, 20), longer)
    left = cut_off(with_count(config, 20), longer, 15, resume=True)
    assert "result.json" not in left, "the shorter run's"
    whole = train(with_count(config, 20), tmp_path / "whole")
    assert train_longer(config, longer, 20) == whole


@pytest.mark.parametrize("setting", ["plain", "passes", "cosine, selector"])
def test_a_finished_run_that_is_resumed_stays_as_it_is(
    setting: str, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("an epoch is trained")

    before = train(config_of(setting), tmp_path)
    assert train(config_of(setting), tmp_path, fail, resume=True) == before


@pytest.mark.parametrize(("setting", "key"), FOLLOW_COUNT.items())
def test_a_schedule_over_all_epochs_cannot_become_longer(
    setting: str, key: str, tmp_path: Path
) -> None:
    config = config_of(setting)
    before = cut_off(config, tmp_path, 5)
    refusal = Refused("same_count", raises=ConfigError, follows=key)
    with refusal:
        train(with_count(config, 20), tmp_path, resume=True)
    assert contents(tmp_path) == before
    train(config, tmp_path, resume=True)
    with refusal:
        is_finished(with_count(config, 20), tmp_path)


def falling(optimizer: torch.optim.Optimizer, epochs: int, directions: object) -> Any:
    scheduler = torch.optim.lr_scheduler.LinearLR(
        optimizer, end_factor=0.1, total_iters=epochs
    )
    return lambda values: scheduler.step()


def test_a_scheduler_of_the_users_own_is_assumed_to_need_the_number_of_epochs() -> None:
    plain = config_of("plain").model_dump()
    config = RunConfig.model_validate(
        {**plain, "scheduler": {"path": f"{__name__}:falling"}}
    )
    assert config.follows_count == "scheduler"


def test_a_run_cannot_become_shorter_than_it_is(tmp_path: Path) -> None:
    train(config_of("plain"), tmp_path)
    with Refused("finished_epochs", raises=ConfigError, epochs=12):
        train(with_count(config_of("plain"), 11), tmp_path, resume=True)


def test_a_finished_run_that_kept_no_state_is_not_replaced(tmp_path: Path) -> None:
    train(config_of("plain"), tmp_path)
    (tmp_path / FILE).unlink()
    with Refused("no_saved_state", str(tmp_path), raises=ExistsError):
        is_finished(with_count(config_of("plain"), 20), tmp_path)


def test_a_run_that_saved_nothing_yet_keeps_its_other_settings(tmp_path: Path) -> None:
    cut_off(config_of("plain"), tmp_path, 1)
    (tmp_path / FILE).unlink(missing_ok=True)
    other = config_of("plain").model_copy(update={"seed": 6})
    with Refused("same_config", raises=ConfigError, keys="seed"):
        train(other, tmp_path, resume=True)


def test_a_run_of_an_older_version_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Its config lacks the keys that have come since; they have their defaults."""
    older = OLDER.read_text()
    config = config_of("mpcs_lr, scale")
    config = RunConfig.model_validate(
        {**config.model_dump(), "selector": {"by": "mpcs", "top_k": 2}}
    )
    assert dump_config(config) != older
    assert changed_keys(older, config) == []
    assert changed_keys(older, with_count(config, 13)) == ["epochs.count"]
    cut = tmp_path / "cut"
    cut_off(config, cut, 7)
    state = torch.load(cut / FILE, weights_only=True)
    del state["stopped"]
    torch.save({**state, "config": older}, cut / FILE)
    (cut / "config.yaml").write_text(older)
    whole = train(config, tmp_path / "whole")
    expected = {**whole, "config.yaml": older.encode()}
    assert train(config, cut, resume=True) == expected
    assert is_finished(config, cut)
