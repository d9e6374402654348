"""A run that is cut off anywhere and resumed leaves the bytes of a whole run."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.resume import FILE, StoppedError
from tests.learning.test_checkpoint_selector import Writer
from tests.refused import Refused
from tests.trainer.toy import contents, cut_off, toy_config, train

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cosine, selector": {
        "scheduler": {"name": "cosine", "warmup_epochs": 3},
        "selector": {"by": "mpcs", "top_k": 2},
    },
    "plateau, average": {
        "scheduler": {"name": "plateau", "patience": 0},
        "training": {"averaging": 0.9},
    },
    "mpcs_lr, scale": {
        "scheduler": {"name": "mpcs_lr", "smoothing": 0.5},
        "training": {
            "loss_scale": "mpcs_count",
            "optimizer": {"name": "sgd", "momentum": 0.9},
        },
    },
    "clipped": {"training": {"clip_norm": 0.1, "optimizer": {"name": "adamw"}}},
    "before": {"epochs": {"count": 12, "when": "before", "every": 2}},
    "ramp": {
        "loss": {"name": "softmax_margin", "margin": 3.0},
        "training": {"margin_ramp": [0.1, 0.6]},
    },
    "passes": {"epochs": {"count": 12, "unit": "pass"}},
    "selector, patience": {"selector": {"by": "mpcs", "keep_every": 3, "patience": 12}},
    "dropout": {"model": {"path": "tests.trainer.test_resume:with_dropout"}},
}


def with_dropout(input_shape: torch.Size, num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Dropout(0.5), torch.nn.Linear(input_shape[0], num_classes)
    )


def config_of(setting: str) -> RunConfig:
    sections = SETTINGS[setting]
    training = {
        "batch_size": 10,
        "learning_rate": 0.05,
        "save_seconds": 0,
        **sections.get("training", {}),
    }
    return toy_config(**{**sections, "training": training})


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_resumed_run_leaves_the_bytes_of_a_whole_run(
    setting: str, tmp_path: Path
) -> None:
    config = config_of(setting)
    for epoch in (1, 5, 6, 12):
        left = cut_off(config, tmp_path / "cut", epoch, resume=True)
        assert left["records.csv"].count(b"\n") == 1 + epoch
    whole = train(config, tmp_path / "whole")
    assert train(config, tmp_path / "cut", resume=True) == whole
    assert FILE in whole, "a run can be trained longer"


def test_what_a_killed_run_left_half_written_is_deleted(tmp_path: Path) -> None:
    """A report that another command writes meanwhile stays."""
    before, report = train(toy_config(), tmp_path), ".report.html.0123abcd.tmp"
    for name in (".resume.pt.f5fa3fc3.tmp", ".records.csv.00000000.tmp", report):
        (tmp_path / name).touch()
    assert train(toy_config(), tmp_path, resume=True) == {**before, report: b""}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_stops_after_the_step(number: int, tmp_path: Path) -> None:
    config = toy_config(training={"batch_size": 10, "save_seconds": 3600})
    before, stopped = signal.getsignal(number), tmp_path / "stopped"

    def ask(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        if epoch.number == 4:
            os.kill(os.getpid(), number)

    place = {"epoch": 4, "step": 4, "folder": str(stopped)}
    with Refused("stopped", raises=StoppedError, **place) as refused:
        train(config, stopped, ask)
    assert refused.value.exit_status == 128 + number
    assert signal.getsignal(number) == before
    assert train(config, stopped, resume=True) == train(config, tmp_path / "whole")


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    def ask(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(toy_config(), tmp_path, ask)


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        train(toy_config(), tmp_path, lambda *_: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_rows_after_the_saved_state_are_cut_off_even_if_half_written(
    tmp_path: Path,
) -> None:
    config, cut = config_of("plain"), tmp_path / "cut"
    cut_off(config, cut, 5)
    with (cut / "records.csv").open("a") as records:
        records.write("6,0.5\n7,0.")
    assert train(config, cut, resume=True) == train(config, tmp_path / "whole")


def test_a_run_that_does_not_fit_its_saved_state_is_refused_and_kept(
    tmp_path: Path,
) -> None:
    before = cut_off(config_of("plain"), tmp_path, 5)
    with Refused("same_config", raises=ConfigError) as refused:
        train(config_of("plateau, average"), tmp_path, resume=True)
    assert "scheduler.name" in refused.value.fields["keys"]
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("lines", "end", "number"), [(0, b"", 0), (3, b"", 2), (5, b"\n", 4)]
)
def test_records_with_fewer_rows_than_the_saved_state_are_refused(
    lines: int, end: bytes, number: int, tmp_path: Path
) -> None:
    """The last row may be half-written."""
    records = cut_off(config_of("plain"), tmp_path, 5)["records.csv"]
    rest = b"".join(records.splitlines(keepends=True)[:lines])
    (tmp_path / "records.csv").write_bytes(rest.removesuffix(end))
    with Refused("saved_epochs", raises=ConfigError, epochs=4, number=number):
        train(config_of("plain"), tmp_path, resume=True)


@pytest.mark.parametrize(
    "state", ["", "not a zip", {}, {"config": Writer(Path("written"))}]
)
def test_a_damaged_state_is_refused_and_runs_no_code(
    state: str | dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cut_off(config_of("plain"), tmp_path, 5)
    if isinstance(state, str):
        (tmp_path / FILE).write_text(state)
    else:
        torch.save(state, tmp_path / FILE)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="saved state"):
        train(config_of("plain"), tmp_path, resume=True)
    assert contents(tmp_path) == before
