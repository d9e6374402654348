"""``mpcs train`` with a stop, and with more epochs for a run that is finished."""

import json
from pathlib import Path

import pytest

from mpcs_torch.trainer.result import read_records
from tests.cli.shell import run
from tests.cli.test_cli import IRIS
from tests.trainer.kill_training import contents


def test_a_finished_run_is_trained_longer_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("training.batch_size=20", "score={}", "-q")
    assert run("train", IRIS, *small, "epochs.count=9", "--out", tmp_path / "whole") == 0
    assert run("train", IRIS, *small, "epochs.count=4", "--out", tmp_path) == 0
    folder = tmp_path / "exp01"
    before = contents(folder)
    assert run("train", "--resume", folder) == 0
    assert f"{folder} is finished" in capsys.readouterr().out
    for override, told in (
        (
            "training.batch_size=5",
            "saved run in training.batch_size; only epochs.count may change",
        ),
        ("epochs.count=3", "epochs.count must be at least 4"),
        ("scheduler={name: cosine}", "the saved run in scheduler.name"),
    ):
        assert run("train", "--resume", folder, override, "-q") == 2
        assert told in capsys.readouterr().err
    assert contents(folder) == before
    assert run("train", "--resume", folder, "epochs.count=9", "-q") == 0
    assert contents(folder) == contents(tmp_path / "whole" / "exp01")


def test_a_run_that_stops_says_so_now_and_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopping = (
        "selector={by: accuracy, patience: 3}",
        "training.learning_rate=1e-30",
        "epochs.unit=pass",
    )
    assert run("train", IRIS, *stopping, "--out", tmp_path) == 0
    told = "after epoch 4 of 150: the best epoch by the selector's rule is still 1 (selector.patience: 3)"
    assert f"Stopped {told}." in capsys.readouterr().out
    folder = tmp_path / "exp01"
    assert len(read_records(folder / "records.csv")) == 4
    assert run("train", "--resume", folder) == 0
    assert f"result.json; it stopped {told}" in capsys.readouterr().out
    assert run("train", "--resume", folder, "--json") == 0
    assert json.loads(capsys.readouterr().out)["stopped"] == told
    assert run("train", "--resume", folder, "epochs.count=500") == 2
    assert "more epochs would not change that" in capsys.readouterr().err
    assert run("report", folder) == 0
    assert f"The run stopped {told}." in (folder / "report.html").read_text().replace(
        "&#39;", "'"
    )
