"""A run that is cut off anywhere and resumed leaves the bytes of a whole run."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.resume import FILE, StoppedError
from tests.learning.test_checkpoint_selector import Writer
from tests.refused import Refused
from tests.trainer.kill_training import contents
from tests.trainer.toy import toy_config, toy_data

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


class CutOffError(Exception):
    pass


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


def cut_at(epoch: int) -> Any:
    def cut(now: MeasuredEpoch, state: TrainingRun) -> None:
        if now.number == epoch:
            raise CutOffError

    return cut


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_resumed_run_leaves_the_bytes_of_a_whole_run(
    setting: str, tmp_path: Path
) -> None:
    config = config_of(setting)
    run_in_folder(config, toy_data(), tmp_path / "whole")
    cut = tmp_path / "cut"
    for epoch in (1, 5, 6, 12):
        with pytest.raises(CutOffError):
            run_in_folder(config, toy_data(), cut, [cut_at(epoch)], resume=True)
        assert len((cut / "records.csv").read_text().splitlines()) == 1 + epoch
    run_in_folder(config, toy_data(), cut, resume=True)
    assert contents(cut) == contents(tmp_path / "whole")
    assert FILE in contents(cut), "a run can be trained longer"


def test_what_a_killed_run_left_half_written_is_deleted(tmp_path: Path) -> None:
    """A report that another command writes meanwhile stays."""
    run_in_folder(toy_config(), toy_data(), tmp_path)
    before = contents(tmp_path)
    report = tmp_path / ".report.html.0123abcd.tmp"
    for name in (".resume.pt.f5fa3fc3.tmp", ".records.csv.00000000.tmp", report.name):
        (tmp_path / name).touch()
    run_in_folder(toy_config(), toy_data(), tmp_path, resume=True)
    report.unlink()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_stops_after_the_step(number: int, tmp_path: Path) -> None:
    config = toy_config(training={"batch_size": 10, "save_seconds": 3600})
    run_in_folder(config, toy_data(), tmp_path / "whole")
    before = signal.getsignal(number)

    def ask(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        if epoch.number == 4:
            os.kill(os.getpid(), number)

    stopped = tmp_path / "stopped"
    place = {"epoch": 4, "step": 4, "folder": str(stopped)}
    with Refused("stopped", raises=StoppedError, **place) as refused:
        run_in_folder(config, toy_data(), stopped, [ask])
    assert refused.value.exit_status == 128 + number
    assert signal.getsignal(number) == before
    run_in_folder(config, toy_data(), stopped, resume=True)
    assert contents(stopped) == contents(tmp_path / "whole")


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    def ask(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_in_folder(toy_config(), toy_data(), tmp_path, [ask])


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_in_folder(
            toy_config(),
            toy_data(),
            tmp_path,
            [lambda *_: signal.raise_signal(signal.SIGINT)],
        )
    finally:
        signal.signal(signal.SIGINT, before)


def test_rows_after_the_saved_state_are_cut_off_even_if_half_written(
    tmp_path: Path,
) -> None:
    config = config_of("plain")
    run_in_folder(config, toy_data(), tmp_path / "whole")
    cut = tmp_path / "cut"
    with pytest.raises(CutOffError):
        run_in_folder(config, toy_data(), cut, [cut_at(5)])
    with (cut / "records.csv").open("a") as records:
        records.write("6,0.5\n7,0.")
    run_in_folder(config, toy_data(), cut, resume=True)
    assert contents(cut) == contents(tmp_path / "whole")


def test_a_run_that_does_not_fit_its_saved_state_is_refused_and_kept(
    tmp_path: Path,
) -> None:
    with pytest.raises(CutOffError):
        run_in_folder(config_of("plain"), toy_data(), tmp_path, [cut_at(5)])
    before = contents(tmp_path)
    with Refused("same_config", raises=ConfigError) as refused:
        run_in_folder(config_of("plateau, average"), toy_data(), tmp_path, resume=True)
    assert "scheduler.name" in refused.value.fields["keys"]
    assert contents(tmp_path) == before
    lines = before["records.csv"].splitlines(keepends=True)
    half_written = b"".join(lines[:4]) + lines[4].rstrip(b"\n")
    for rest, number in ((b"", 0), (b"".join(lines[:3]), 2), (half_written, 4)):
        (tmp_path / "records.csv").write_bytes(rest)
        with Refused("saved_epochs", raises=ConfigError, epochs=4, number=number):
            run_in_folder(config_of("plain"), toy_data(), tmp_path, resume=True)


@pytest.mark.parametrize("state", [b"", b"not a zip", "empty", "code"])
def test_a_damaged_state_is_refused_and_runs_no_code(
    state: bytes | str, tmp_path: Path
) -> None:
    with pytest.raises(CutOffError):
        run_in_folder(config_of("plain"), toy_data(), tmp_path, [cut_at(5)])
    if isinstance(state, bytes):
        (tmp_path / FILE).write_bytes(state)
    else:
        torch.save(
            {} if state == "empty" else {"config": Writer(tmp_path / "written")},
            tmp_path / FILE,
        )
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="saved state"):
        run_in_folder(config_of("plain"), toy_data(), tmp_path, resume=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("size", "kills"),
    [
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(2, 10, marks=pytest.mark.exhaustive),
    ],
)
def test_killed_runs_go_on(size: int, kills: int, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.trainer.kill_training",
        str(tmp_path),
        str(kills),
        str(size),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith(f"{kills} kills")
