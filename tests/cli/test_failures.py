"""Errors of the user are one message; a bug says how to see its traceback."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from errno import ENOSPC
from io import StringIO
from pathlib import Path

import pytest
import torch

import mpcs_torch
from mpcs_torch.concern import ConcernError
from mpcs_torch.concern.checks import Problem
from mpcs_torch.errors import DataError, ExistsError, InvalidValueError, MpcsError
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.io.yaml_files import YamlError
from mpcs_torch.trainer.config.sections import ConfigError
from tests.cli.shell import Shell

USERS = [
    ConcernError([Problem(("factor",), "must be positive")]),
    ConfigError("no_cuda", "device.accelerator cuda:"),
    DataError("published_values", "MNIST"),
    InvalidValueError("metric_of_epoch", "m", metric="mpcs", epoch=1),
    PredictionsError(Path("p.csv"), "has no rows"),
    ExistsError("has_run", "runs/mine"),
    YamlError("no_merge_key", (1, 2)),
]


Fail = Callable[[BaseException], None]


@pytest.fixture
def demo_raises(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Make ``mpcs demo`` raise."""

    def replace(error: BaseException) -> None:
        def demo() -> None:
            raise error

        monkeypatch.setattr("mpcs_torch.cli.verbs.demo.demo", demo)

    return replace


@pytest.mark.parametrize("error", USERS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_user_is_its_message(
    error: Exception, demo_raises: Fail, mpcs: Shell
) -> None:
    assert isinstance(error, MpcsError)
    demo_raises(error)
    assert mpcs("demo", 2).err == f"mpcs: {error}\n"
    debugged = mpcs("--debug demo", 2).err
    assert debugged.startswith("Traceback")
    assert debugged.endswith(f"mpcs: {error}\n")


BUG = "k is odd; this is a bug: `mpcs --debug ...` shows where"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (PermissionError(13, "Permission denied", "file"), 2, "file: Permission denied"),
        (OSError("the disk is full"), 2, "the disk is full"),
        (ValueError("k is\nodd"), ExitStatus.FAULT, f"unexpected ValueError: {BUG}"),
        (RuntimeError("k is odd"), ExitStatus.FAULT, f"unexpected RuntimeError: {BUG}"),
        (KeyboardInterrupt(), ExitStatus.INTERRUPTED, "interrupted"),
        (
            ModuleNotFoundError("No module", name="sklearn.datasets"),
            2,
            "this command needs sklearn: pip install 'mpcs_torch[train]'",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_any_other_error_is_one_line(
    error: BaseException, status: int, message: str, demo_raises: Fail, mpcs: Shell
) -> None:
    demo_raises(error)
    assert mpcs("demo", status).err == f"mpcs: {message}\n"
    assert mpcs("--debug demo", status).err.startswith("Traceback")


class FullOutput(StringIO):
    """A standard output on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_full_standard_output_is_named(
    option: str, mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", FullOutput())
    message = f"mpcs: standard output: {os.strerror(ENOSPC)}\n"
    assert mpcs(f"data list {option}", 2).err == message


@pytest.mark.parametrize("allocate", [lambda: bytearray(2**62), lambda: torch.empty(2**60)])
def test_too_little_memory_is_no_bug(
    allocate: Callable[[], object], mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def demo() -> None:
        allocate()

    monkeypatch.setattr("mpcs_torch.cli.verbs.demo.demo", demo)
    assert "memory" in mpcs("demo", 2).err


@pytest.mark.slow
def test_a_closed_pipe_is_silent() -> None:
    code = "from mpcs_torch.cli.app import run_app; run_app(['data', 'list'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "command",
    [
        "select .",
        "reproduce exp03 --records . --out runs",
        "train bytes.yaml",
        "concern suggest bytes.yaml --from tree --out out.yaml",
        "concern suggest bytes.yaml --from costs --out out.yaml",
        "concern suggest low --from order --out out.yaml",
        "score bytes.yaml",
        "detect bytes.yaml",
        "score p.csv --concern bytes.yaml",
    ],
)
def test_what_is_wrong_in_files_is_an_error_of_the_user(command: str, mpcs: Shell) -> None:
    for name in ("records.csv", "exp03.csv"):
        Path(name).write_text("epoch,accuracy\n1,high\n")
    Path("bytes.yaml").write_bytes(b"\xff\xfe\x00")
    Path("p.csv").write_text("target,0,1\n0,0.5,0.5\n")
    assert "Traceback" not in mpcs.refusal(command)


def test_each_exit_status_has_a_name_and_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
    listed = re.findall(r"^- (\d+): ", page.read_text(), re.MULTILINE)
    assert list(map(int, listed)) == list(ExitStatus)
    plain = re.compile(r"(exit_status = |Exit\(|sys\.exit\()\d+\)?$", re.MULTILINE)
    assert [
        path.name
        for path in Path(mpcs_torch.__file__).parent.rglob("*.py")
        if plain.search(path.read_text())
    ] == []
