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
from mpcs_torch.cli.failures import reported_errors
from mpcs_torch.concern import ConcernError
from mpcs_torch.concern.checks import Problem
from mpcs_torch.errors import DataError, ExistsError, InvalidValueError, MpcsError
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.io.yaml_files import YamlError
from mpcs_torch.trainer.config.sections import ConfigError
from tests.cli.shell import run

USERS = [
    ConcernError([Problem(("factor",), "must be positive")]),
    ConfigError("no_cuda", "device.accelerator cuda:"),
    DataError("published_values", "MNIST"),
    InvalidValueError("metric_of_epoch", "m", metric="mpcs", epoch=1),
    PredictionsError(Path("p.csv"), "has no rows"),
    ExistsError("has_run", "runs/mine"),
    YamlError("no_merge_key", (1, 2)),
]


@pytest.fixture
def demo_raises(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make ``mpcs demo`` raise."""

    def replace(error: BaseException) -> None:
        def demo() -> None:
            raise error

        monkeypatch.setattr("mpcs_torch.cli.verbs.demo.demo", demo)

    return replace


@pytest.mark.parametrize("error", USERS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_user_is_its_message(
    error: Exception,
    demo_raises: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert isinstance(error, MpcsError)
    demo_raises(error)
    assert run("demo") == 2
    assert capsys.readouterr().err == f"mpcs: {error}\n"
    assert run("--debug", "demo") == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith(f"mpcs: {error}\n")


def test_an_error_of_the_system_names_its_file(
    tmp_path: Path,
    demo_raises: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo_raises(PermissionError(13, "Permission denied", str(tmp_path / "file")))
    assert run("demo") == 2
    assert capsys.readouterr().err == f"mpcs: {tmp_path / 'file'}: Permission denied\n"
    demo_raises(OSError("the disk is full"))
    assert run("demo") == 2
    assert capsys.readouterr().err == "mpcs: the disk is full\n"


class FullOutput(StringIO):
    """A standard output on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_standard_output_is_named(
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", FullOutput())
    assert run("data", "list", *options) == 2
    assert capsys.readouterr().err == f"mpcs: standard output: {os.strerror(ENOSPC)}\n"


@pytest.mark.parametrize("allocate", [lambda: bytearray(2**62), lambda: torch.empty(2**60)])
def test_too_little_memory_is_no_bug(
    allocate: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def demo() -> None:
        allocate()

    monkeypatch.setattr("mpcs_torch.cli.verbs.demo.demo", demo)
    assert run("demo") == 2
    assert "memory" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("k is\nodd"), RuntimeError("k is odd")])
def test_any_other_error_is_one_line_that_says_how_to_see_more(
    error: Exception,
    demo_raises: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo_raises(error)
    assert run("demo") == ExitStatus.FAULT
    message = f"mpcs: unexpected {type(error).__name__}: k is odd; this is a bug: `mpcs --debug ...` shows where\n"
    assert capsys.readouterr().err == message
    assert run("--debug", "demo") == ExitStatus.FAULT
    assert capsys.readouterr().err.startswith("Traceback")


def test_an_interrupt_is_one_line(
    demo_raises: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    demo_raises(KeyboardInterrupt())
    assert run("demo") == ExitStatus.INTERRUPTED
    assert capsys.readouterr().err == "mpcs: interrupted\n"


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


def test_what_is_wrong_in_files_is_an_error_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text("epoch,accuracy\n1,high\n")
    assert run("select", tmp_path) == 2
    (tmp_path / "exp03.csv").write_text("epoch,accuracy\n1,high\n")
    assert run("reproduce", "exp03", "--records", tmp_path, "--out", tmp_path / "runs") == 2
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    assert run("train", tmp_path / "bytes.yaml") == 2
    assert (
        run(
            "concern",
            "suggest",
            tmp_path / "bytes.yaml",
            "--from",
            "tree",
            "--out",
            tmp_path / "out.yaml",
        )
        == 2
    )
    assert (
        run(
            "concern",
            "suggest",
            tmp_path / "bytes.yaml",
            "--from",
            "costs",
            "--out",
            tmp_path / "out.yaml",
        )
        == 2
    )
    assert (
        run("concern", "suggest", "low", "--from", "order", "--out", tmp_path / "out.yaml")
        == 2
    )
    assert run("score", tmp_path / "bytes.yaml") == 2
    assert run("detect", tmp_path / "bytes.yaml") == 2
    (tmp_path / "p.csv").write_text("target,0,1\n0,0.5,0.5\n")
    assert run("score", tmp_path / "p.csv", "--concern", tmp_path / "bytes.yaml") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_missing_package_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_, reported_errors(debug=False):
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.datasets")
    assert exit_.value.code == 2
    assert (
        capsys.readouterr().err
        == "mpcs: this command needs sklearn: pip install 'mpcs_torch[train]'\n"
    )


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
