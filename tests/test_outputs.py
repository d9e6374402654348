"""Laws for every output, those of `test_power_failures.WHOLE_FILES`: modes, links, special files, and full disks."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch

from mpcs_torch.io.atomic_files import replace_file
from mpcs_torch.learning import CheckpointSelector, DecisionRule, SelectionRule
from mpcs_torch.trainer.loop import MeasuredEpoch
from mpcs_torch.trainer.result import record_writer
from tests.cli.shell import run
from tests.cli.test_cli import IRIS
from tests.monitoring.test_watch import CONCERN
from tests.monitoring.test_watch import rows as log_rows
from tests.monitoring.test_watch import write as write_log
from tests.power_failure import image_of
from tests.test_power_failures import WHOLE_FILES

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="needs links, modes, pipes and limits of POSIX"
)
NEW_FILE_ALONE = {"concern", "mark of a started run"}
"""Writers that replace no file."""
REPLACING = [name for name in WHOLE_FILES if name not in NEW_FILE_ALONE]


def outputs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.slow
@pytest.mark.parametrize("name", REPLACING)
def test_an_output_keeps_its_mode_and_is_written_through_a_link(
    name: str, tmp_path: Path
) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    WHOLE_FILES[name](folder, 1)
    for path in outputs(folder):
        path.chmod(0o600)
        path.rename(elsewhere / path.name)
        path.symlink_to(elsewhere / path.name)
    before = {path.name: path.read_bytes() for path in outputs(folder)}
    WHOLE_FILES[name](folder, 2)
    after = {path.name: path.read_bytes() for path in outputs(folder)}
    assert after.keys() == before.keys()
    assert after != before
    for path in outputs(folder):
        assert path.is_symlink(), f"{path.name} was replaced"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_pipe_or_device_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    WHOLE_FILES[name](tmp_path / "first", 1)
    for path in outputs(tmp_path / "first"):
        folder = tmp_path / path.name
        folder.mkdir()
        os.mkfifo(folder / path.name)
        # A command returns 2, which is not the expected 0.
        with pytest.raises((AssertionError, ValueError, OSError)):
            WHOLE_FILES[name](folder, 1)
        assert stat.S_ISFIFO((folder / path.name).lstat().st_mode), "the pipe was replaced"


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes: as on a full disk, a write then fails, and names no file."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only() -> Iterator[None]:
    """Let no file be opened for writing by the one writer, as in a read-only place."""

    def refuse(path: Any, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, *mode)

    opened = os.open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpcs_torch.io.atomic_files.os.open", refuse)
        yield


FAILURES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    os.strerror(errno.EFBIG): lambda: limited_files(0),
    os.strerror(errno.EROFS): read_only,
}
RAISING = [
    name
    for name in WHOLE_FILES
    if name not in ("mark of a started run", "state and report of a monitor")
]
"""All but a file whose error is a warning, and a writer that also writes what it reads."""


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", RAISING)
def test_an_output_that_cannot_be_written_is_named_and_stays_as_it_was(
    name: str, failure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WHOLE_FILES[name](tmp_path, 1)
    messages = {f"{path}: {failure}" for path in outputs(tmp_path)}
    if name in NEW_FILE_ALONE:
        for path in outputs(tmp_path):
            path.unlink()
    before = image_of(tmp_path)
    capsys.readouterr()
    # A command returns 2.
    with (
        FAILURES[failure](),
        pytest.raises((OSError, AssertionError)) as caught,
    ):
        WHOLE_FILES[name](tmp_path, 1 if name in NEW_FILE_ALONE else 2)
    if isinstance(caught.value, OSError):
        assert f"{caught.value.filename}: {caught.value.strerror}" in messages
    else:
        assert capsys.readouterr().err.splitlines()[-1].removeprefix("mpcs: ") in messages
    assert image_of(tmp_path) == before


@pytest.mark.parametrize("failure", FAILURES)
def test_a_run_and_a_monitor_name_the_file_that_they_cannot_write(
    failure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = (
        "train",
        IRIS,
        "epochs.count=1",
        "selector={by: mpcs}",
        "name=run",
        "--out",
        tmp_path,
    )
    DecisionRule(CONCERN, calibration=None).save(tmp_path / "rule.pt")
    log = write_log(tmp_path / "log.csv", log_rows(20))
    watch = (
        "monitor",
        tmp_path / "rule.pt",
        log,
        "--state",
        tmp_path / "s.json",
        "--limit",
        "any <= 0.5",
    )
    for command, file in ((train, "run/config.yaml"), (watch, "s.json")):
        with FAILURES[failure]():
            assert run(*command) == 2
        assert (
            capsys.readouterr().err.splitlines()[-1]
            == f"mpcs: {tmp_path / file}: {failure}"
        )
    assert run(*train, "-q") == 0
    with FAILURES[failure]():
        assert run("train", "--resume", tmp_path / "run", "epochs.count=2", "-q") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"mpcs: {tmp_path / 'run'}/")


def test_a_record_and_a_checkpoint_that_do_not_fit_are_named(tmp_path: Path) -> None:
    records = tmp_path / "records.csv"
    with (
        pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught,
        record_writer(records, ["accuracy"]) as write,
        limited_files(20),
    ):
        write(MeasuredEpoch(1, {"accuracy": 0.5}, torch.zeros(2, 2)), None)  # type: ignore[arg-type]
    assert caught.value.filename == str(records)
    selector = CheckpointSelector(
        tmp_path / "checkpoints", SelectionRule("mpcs", {"mpcs": "min"})
    )
    with (
        pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught,
        limited_files(100),
    ):
        selector.update({"weight": torch.zeros(1000)}, epoch=1, mpcs=0.5)
    assert caught.value.filename == str(tmp_path / "checkpoints")


def test_an_error_keeps_the_name_of_the_file_that_it_is_about(tmp_path: Path) -> None:
    def read_something_else(file: BinaryIO) -> None:
        (tmp_path / "input").read_bytes()

    with pytest.raises(FileNotFoundError) as caught:
        replace_file(tmp_path / "output", read_something_else)
    assert caught.value.filename == str(tmp_path / "input")

    def lose_connection(file: BinaryIO) -> None:
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    with pytest.raises(ConnectionResetError) as lost:
        replace_file(tmp_path / "output", lose_connection)
    assert lost.value.filename is None
