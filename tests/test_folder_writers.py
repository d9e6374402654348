"""A folder has one writing process at a time, and the next one goes on with what it finds."""

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from errno import ENOLCK
from pathlib import Path

import pytest
import torch

from mpcs_torch.errors import ExistsError
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.io.atomic_files import FolderInUseError, locked
from mpcs_torch.learning import CheckpointSelector, DecisionRule, SelectionRule
from mpcs_torch.monitoring.watch import Settings, Watch, watch_logs
from mpcs_torch.trainer.folder import run_in_folder
from tests.cli.shell import run
from tests.monitoring.test_watch import CONCERN as TWO
from tests.monitoring.test_watch import rows as log_rows
from tests.monitoring.test_watch import write as write_log
from tests.power_failure import PACKAGE, image_of
from tests.processes.forked import forked, succeeded
from tests.trainer.toy import toy_config, toy_data

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such locks")

RULE = SelectionRule("mpcs", {"mpcs": "min"})
RUN = toy_config(epochs={"count": 2})
Pause = Callable[[], None]


def select(made: CheckpointSelector, number: int) -> None:
    made.update({"weight": torch.tensor(number)}, epoch=number, mpcs=number / 10)


def select_first(folder: Path, pause: Pause) -> None:
    made = CheckpointSelector(folder, RULE, top_k=2, resume=True)
    select(made, 1)
    pause()
    select(made, 2)


def select_late(folder: Path) -> Callable[[], None]:
    made = CheckpointSelector(folder, RULE, top_k=2, resume=True)

    def write() -> None:
        select(made, 3)
        assert [epoch.number for epoch in made.epochs] == [1, 2, 3]
        assert made.load_best() == {"weight": torch.tensor(1)}

    return write


def run_first(folder: Path, pause: Pause) -> None:
    run_in_folder(
        RUN, toy_data(), folder, [lambda epoch, _: pause() if epoch.number == 1 else None]
    )


def run_late(folder: Path) -> Callable[[], None]:
    tries: list[int] = []

    def write() -> None:
        tries.append(1)
        with pytest.raises(ExistsError) if len(tries) > 1 else nullcontext():
            run_in_folder(RUN, toy_data(), folder)

    return write


def watching(folder: Path, advance: Callable[[int], object]) -> None:
    logs = [folder / "a.csv", folder / "b.csv"]
    for log in logs:
        if not log.exists():
            write_log(log, log_rows(30))
    settings = Settings("", ["any <= 0.5"])
    watch = (
        Watch.load(folder / "s.json", TWO)
        if (folder / "s.json").exists()
        else Watch(settings, TWO)
    )
    watch_logs(folder / "s.json", logs, lambda: watch, ReadOptions(), str, advance)


def watch_first(folder: Path, pause: Pause) -> None:
    pauses = [pause]
    watching(folder, lambda _: pauses.pop()() if pauses else None)


def watch_late(folder: Path) -> Callable[[], None]:
    return lambda: watching(folder, lambda _: None)


WRITERS: Mapping[
    str, tuple[Callable[[Path, Pause], None], Callable[[Path], Callable[[], None]]]
] = {
    "learning/checkpoint_selector.py": (select_first, select_late),
    "trainer/folder.py": (run_first, run_late),
    "monitoring/watch.py": (watch_first, watch_late),
}
"""The work of a first process, and the code that makes the writer of a second one, by the module that locks."""


@contextmanager
def writing_elsewhere(act: Callable[[Pause], None]) -> Iterator[None]:
    """Let another process act until it calls its argument, and let it go on at the end."""
    begun, go_on = os.pipe(), os.pipe()

    def pause() -> None:
        os.write(begun[1], b".")
        os.read(go_on[0], 1)

    child = forked(lambda: act(pause))
    os.close(begun[1])  # so that a child that fails before is not waited for
    try:
        assert os.read(begun[0], 1) == b"."
        yield
    finally:
        os.write(go_on[1], b".")
        ended_well = succeeded([child])
        for handle in (begun[0], *go_on):
            os.close(handle)
    assert ended_well


@pytest.mark.parametrize("module", WRITERS)
def test_a_second_process_is_refused_and_later_finds_all_that_the_first_wrote(
    module: str, tmp_path: Path
) -> None:
    """Even if its writer was made before the first had written anything."""
    first, make_late = WRITERS[module]
    write = make_late(tmp_path)
    with writing_elsewhere(lambda pause: first(tmp_path, pause)):
        begun = image_of(tmp_path)
        assert begun
        with pytest.raises(FolderInUseError, match="is being written by another process"):
            write()
        assert image_of(tmp_path) == begun
    done = image_of(tmp_path)
    assert done != begun
    write()
    done.pop("manifest.json", None)  # which names the new epoch, too
    assert done.items() <= image_of(tmp_path).items()


def test_the_process_that_holds_a_folder_may_hold_it_again(tmp_path: Path) -> None:
    def intrude() -> None:
        with pytest.raises(FolderInUseError), locked(tmp_path):
            pass

    def enter() -> None:
        with locked(tmp_path):
            pass

    with locked(tmp_path):
        with locked(tmp_path):
            pass
        assert succeeded([forked(intrude)]), "the first hold lasts"
    assert succeeded([forked(enter)])


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every lock fail, as on some network file systems."""

    def refuse(handle: int, operation: int) -> None:
        raise OSError(ENOLCK, os.strerror(ENOLCK))

    monkeypatch.setattr("mpcs_torch.io.atomic_files.fcntl.flock", refuse)


@pytest.mark.usefixtures("no_locks")
def test_a_folder_that_cannot_be_locked_is_said_once(tmp_path: Path) -> None:
    config = toy_config(epochs={"count": 1}, selector={"by": "mpcs"})
    with pytest.warns(UserWarning, match="cannot be locked") as warned:
        run_in_folder(config, toy_data(), tmp_path / "run")
    texts = [str(warning.message) for warning in warned]
    assert sorted(text.partition(" ")[0] for text in texts) == [
        str(tmp_path / "run"),
        str(tmp_path / "run" / "checkpoints"),
    ]
    assert all(os.strerror(ENOLCK) in text for text in texts)


@pytest.mark.usefixtures("no_locks")
def test_a_monitor_says_once_that_its_state_cannot_be_locked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DecisionRule(TWO, calibration=None).save(tmp_path / "rule.pt")
    logs = [write_log(tmp_path / f"{name}.csv", log_rows(30)) for name in "ab"]
    settings = ("--state", tmp_path / "s.json", "--limit", "any <= 0.5")
    assert run("monitor", tmp_path / "rule.pt", *logs, *settings) == 0
    assert capsys.readouterr().err.count("s.json.lock cannot be locked") == 1


def takes_a_lock(path: Path) -> bool:
    """Whether the module at ``path`` imports what locks a folder."""
    imports = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    names = {
        alias.name
        for node in imports
        if node.module == "mpcs_torch.io.atomic_files"
        for alias in node.names
    }
    return not names.isdisjoint({"locked", "acquire"})


def test_whoever_takes_a_lock_is_tried_above() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if takes_a_lock(path)]
    assert {str(path.relative_to(PACKAGE)) for path in paths} == set(WRITERS)
