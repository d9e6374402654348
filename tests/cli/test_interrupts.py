"""Ctrl-C and SIGTERM end long work with one message, which says how to go on."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.trainer.loop import MeasuredEpoch
from tests.cli.shell import run
from tests.cli.test_cli import IRIS

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(params=SIGNALS, ids=["Ctrl-C", "SIGTERM"])
def asked(request: pytest.FixtureRequest) -> tuple[Callable[..., None], int]:
    """A function that asks this process to end, and the exit status that follows."""
    number, status = request.param
    return (lambda *_, **__: signal.raise_signal(number)), status


def test_a_run_is_saved_and_its_command_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[Callable[..., None], int],
) -> None:
    ask, status = asked
    with monkeypatch.context() as patched:
        epochs = iter([ask])

        def ask_and_read(epoch: MeasuredEpoch) -> dict[str, float]:
            next(epochs, lambda: None)()
            return {"epoch": epoch.number, **epoch.values}

        patched.setattr(MeasuredEpoch, "record", property(ask_and_read))
        assert run("train", IRIS, "epochs.count=3", "--out", tmp_path) == status
    folder = tmp_path / "exp01"
    assert f"`mpcs train --resume {folder}` resumes it" in capsys.readouterr().err
    assert (folder / "resume.pt").exists()
    assert run("train", "--resume", folder) == 0


def test_a_run_that_is_interrupted_outside_its_steps_goes_on_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("mpcs_torch.trainer.folder.measure_result", interrupt)
        assert (
            run("train", IRIS, "epochs.count=2", "--out", tmp_path)
            == ExitStatus.INTERRUPTED
        )
    told = capsys.readouterr().err
    assert (
        f"`mpcs train --resume {tmp_path / 'exp01'}` resumes from the last saved state\n"
        in told
    )
    assert told.endswith("mpcs: interrupted\n")
    assert run("train", "--resume", tmp_path / "exp01") == 0
