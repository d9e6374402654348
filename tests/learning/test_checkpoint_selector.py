"""The right checkpoints stay intact on disk, even after kills, full disks and restarts."""

import errno
import gc
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.io import atomic_files as files
from mpcs_torch.learning import (
    CheckpointSelector,
    SelectionRule,
    checkpoint_files,
    checkpoint_selector,
)
from tests.processes.forked import forked, succeeded
from tests.refused import Refused

RULE = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"})


def update(
    selector: CheckpointSelector, epoch: int, mpcs: float, accuracy: float = 0.5
) -> None:
    selector.update(
        {"weight": torch.tensor(epoch)}, epoch=epoch, mpcs=mpcs, accuracy=accuracy
    )


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "manifest.json")


def test_only_the_best_checkpoint_is_kept(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path / "new" / "folder", RULE)
    for epoch, mpcs in enumerate([0.5, 0.3, float("nan"), 0.4, 0.3], start=1):
        update(selector, epoch, mpcs)
    assert checkpoints(selector.folder) == ["epoch-00002.pt"]
    assert selector.load_best() == {"weight": torch.tensor(2)}
    assert selector.best is not None
    assert (selector.best.number, selector.last_epoch) == (2, 5)


def test_top_k_last_and_every_nth_are_kept(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, top_k=2, keep_last=True, keep_every=3)
    for epoch, mpcs in enumerate([0.2, 0.1, 0.9, 0.8, 0.7], start=1):
        update(selector, epoch, mpcs)
    assert checkpoints(tmp_path) == [f"epoch-0000{n}.pt" for n in (1, 2, 3, 5)]


def test_no_update_waits_for_the_disk_where_the_caller_forgoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("waits"))
    selector = CheckpointSelector(tmp_path, RULE, flush=False)
    update(selector, 1, 0.2)
    assert selector.load_best() == {"weight": torch.tensor(1)}


class Writer:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.path,)


def test_no_checkpoint_runs_code_even_if_its_checksum_is_right(tmp_path: Path) -> None:
    """As one of somebody else's folder might, whose manifest fits it."""
    mark = tmp_path / "was here"
    careless = CheckpointSelector(tmp_path / "folder", RULE, weights_only=False)
    careless.update({"weight": Writer(mark)}, epoch=1, mpcs=0.1, accuracy=0.5)
    mark.unlink()  # made when the selector has looked whether the checkpoint loads
    selector = CheckpointSelector.open(tmp_path / "folder")
    for load in (selector.load_best, lambda: selector.load(1)):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            load()
    assert not mark.exists()
    torch.load(next(selector.folder.glob("*.pt")), weights_only=False)
    assert mark.exists(), "the checkpoint is not hostile"


def test_a_state_is_built_only_to_be_saved(tmp_path: Path) -> None:
    built: list[int] = []
    selector = CheckpointSelector(tmp_path, RULE)
    for epoch, mpcs in enumerate([0.2, 0.9, 0.1], start=1):
        selector.update(
            lambda epoch=epoch: built.append(epoch) or {},
            epoch=epoch,
            mpcs=mpcs,
            accuracy=0.5,
        )
    assert built == [1, 3]


def test_a_selector_that_is_gone_lets_another_process_write(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.3)
    assert not succeeded(
        [forked(lambda: update(CheckpointSelector(tmp_path, RULE, resume=True), 2, 0.2))]
    )
    del selector
    gc.collect()
    assert succeeded(
        [forked(lambda: update(CheckpointSelector(tmp_path, RULE, resume=True), 2, 0.2))]
    )


def test_the_best_epochs_of_other_metrics_are_kept_to_compare_with(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, keep_best_by=["accuracy"])
    for epoch, (mpcs, accuracy) in enumerate(
        [(0.3, 0.8), (0.2, 0.7), (0.4, 0.9), (0.5, 0.6)], start=1
    ):
        selector.update(
            {"weight": torch.tensor(epoch)}, epoch=epoch, mpcs=mpcs, accuracy=accuracy
        )
    assert checkpoints(tmp_path) == ["epoch-00002.pt", "epoch-00003.pt"]
    with Refused("directed_metrics", "keep_best_by", "loss"):
        CheckpointSelector(tmp_path / "new", RULE, keep_best_by=["loss"])


def test_going_on_must_be_asked_for(tmp_path: Path) -> None:
    update(CheckpointSelector(tmp_path / "old", RULE), 1, 0.1)
    with Refused("no_earlier_run", "folder", raises=FileExistsError):
        CheckpointSelector(tmp_path / "old", RULE)
    with Refused("no_files", "folder", raises=FileExistsError, file="old"):
        CheckpointSelector(tmp_path, RULE)
    assert checkpoints(tmp_path / "old") == ["epoch-00001.pt"]


def test_reading_a_folder_leaves_the_files_of_a_live_run(tmp_path: Path) -> None:
    update(CheckpointSelector(tmp_path, RULE), 1, 0.1)
    (tmp_path / ".epoch-00002.pt.tmp").write_text("being written")
    reader = CheckpointSelector(tmp_path, RULE, resume=True)
    assert reader.load_best() == {"weight": torch.tensor(1)}
    assert (tmp_path / ".epoch-00002.pt.tmp").exists()
    update(reader, 1, 0.1)
    assert checkpoints(tmp_path) == ["epoch-00001.pt"]


def test_a_repeated_epoch_changes_nothing_or_is_another_candidate(tmp_path: Path) -> None:
    first = CheckpointSelector(tmp_path, RULE)
    update(first, 1, 0.3)
    update(first, 1, 0.3)  # a second validation within the epoch
    before = (tmp_path / "manifest.json").read_bytes()
    selector = CheckpointSelector(tmp_path, RULE, resume=True)
    for _ in range(2):
        update(selector, 1, 0.3)
        assert (tmp_path / "manifest.json").read_bytes() == before
    update(selector, 1, 0.3)
    assert len(selector.epochs) == 3
    update(selector, 1, 0.9)
    assert checkpoints(tmp_path) == ["epoch-00001.pt"]
    update(selector, 1, 0.2)
    assert checkpoints(tmp_path) == ["epoch-00001-2.pt"]


def test_a_damaged_file_is_reported_and_the_next_best_is_loaded(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, top_k=2)
    update(selector, 1, 0.2)
    update(selector, 2, 0.1)
    (tmp_path / "epoch-00002.pt").write_bytes(
        (tmp_path / "epoch-00002.pt").read_bytes()[:100]
    )
    with pytest.warns(UserWarning, match=r"epoch-00002.pt is missing or damaged"):
        assert selector.load_best() == {"weight": torch.tensor(1)}
    (tmp_path / "epoch-00001.pt").unlink()
    with (
        pytest.warns(UserWarning, match="trying the next best"),
        Refused("intact_within_limits", str(tmp_path), raises=FileNotFoundError),
    ):
        selector.load_best()


@pytest.mark.parametrize("at", ["checkpoint", "manifest"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_error_is_reported_and_keeps_the_old_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, code: int
) -> None:
    def full_disk(file: Any) -> None:
        file.write(b"half")
        raise OSError(code, os.strerror(code))

    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.2)
    before = (tmp_path / "manifest.json").read_bytes()
    create_file = files.create_file

    def failing(path: Path, write: Any, *, flush: bool) -> str:
        return create_file(path, full_disk if at == "checkpoint" else write, flush=flush)

    def failing_append(folder: Path, size: int, *args: Any, **kwargs: Any) -> int:
        with (folder / checkpoint_files.MANIFEST).open("ab") as file:
            full_disk(file)
        return size

    monkeypatch.setattr(checkpoint_files, "create_file", failing)
    monkeypatch.setattr(
        checkpoint_files,
        "append",
        failing_append if at == "manifest" else checkpoint_files.append,
    )
    with pytest.raises(
        OSError,
        match="cannot save the checkpoint of epoch 2; earlier checkpoints are kept: "
        + os.strerror(code),
    ):
        update(selector, 2, 0.1)
    monkeypatch.undo()
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert CheckpointSelector(tmp_path, RULE, resume=True).load_best() == {
        "weight": torch.tensor(1)
    }
    assert checkpoints(tmp_path) == ["epoch-00001.pt"]
    update(selector, 2, 0.1)
    assert selector.load_best() == {"weight": torch.tensor(2)}


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full"
)
def test_torch_reports_a_full_disk_as_an_oserror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    monkeypatch.setattr(files.os, "open", lambda *_: full)
    with pytest.raises(OSError, match="No space left"):
        files.create_file(
            tmp_path / "full", lambda file: torch.save(torch.zeros(10**6), file)
        )


def test_a_failure_at_the_last_step_leaves_no_stray_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.2)

    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint_selector, "rename", fails)
    with pytest.raises(OSError, match="cannot save the checkpoint of epoch 2"):
        update(selector, 2, 0.1)
    monkeypatch.undo()
    assert checkpoints(tmp_path) == ["epoch-00001.pt"]
    assert CheckpointSelector(tmp_path, RULE, resume=True).load_best() == {
        "weight": torch.tensor(1)
    }
    update(selector, 2, 0.1)
    assert checkpoints(tmp_path) == ["epoch-00002.pt"]


def test_a_lost_best_checkpoint_is_reported_and_takes_no_place(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.1)
    (tmp_path / "epoch-00001.pt").unlink()
    with pytest.warns(UserWarning, match="epoch 1 is lost"):
        resumed = CheckpointSelector(tmp_path, RULE, resume=True)
    update(resumed, 2, 0.3)
    assert [epoch.file for epoch in resumed.epochs] == [None, "epoch-00002.pt"]
    assert resumed.load_best() == {"weight": torch.tensor(2)}
    update(resumed, 1, 0.1)
    assert resumed.load_best() == {"weight": torch.tensor(1)}
    assert [epoch.number for epoch in resumed.epochs] == [1, 2, 1]
    assert checkpoints(tmp_path) == ["epoch-00001-2.pt"]
    with pytest.warns(UserWarning, match="epoch 1 is lost"):
        resumed = CheckpointSelector(tmp_path, RULE, resume=True)
    update(resumed, 1, 0.1)
    assert len(resumed.epochs) == 3
    assert resumed.load_best() == {"weight": torch.tensor(1)}


def test_torch_failing_twice_is_one_oserror(tmp_path: Path) -> None:
    def write(file: Any) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        finally:
            raise RuntimeError("unexpected pos")

    with pytest.raises(OSError, match="No space left"):
        files.create_file(tmp_path / "file", write)
    assert not (tmp_path / "file").exists()


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "epoch-00001.pt").write_text("mine")
    selector = CheckpointSelector(tmp_path, RULE, resume=True)
    update(selector, 1, 0.2)
    update(selector, 2, 0.1)
    assert checkpoints(tmp_path) == ["epoch-00001.pt", "epoch-00002.pt"]
    assert (tmp_path / "epoch-00001.pt").read_text() == "mine"


def test_another_rule_needs_another_folder(tmp_path: Path) -> None:
    update(CheckpointSelector(tmp_path, RULE), 1, 0.2)
    with Refused("same_rule", raises=ValueError, name="by"):
        CheckpointSelector(
            tmp_path, SelectionRule("accuracy", RULE.directions), resume=True
        )


def test_a_selector_that_was_never_updated_follows_its_folder(tmp_path: Path) -> None:
    """As in the parent of spawned processes, or in a notebook beside the training."""
    reader = CheckpointSelector(tmp_path, RULE, patience=1)
    writer = CheckpointSelector(tmp_path, RULE, patience=1)
    assert (reader.best, reader.should_stop) == (None, False)
    for epoch, mpcs in enumerate([0.2, 0.1, 0.3]):
        update(writer, epoch, mpcs)
        assert (reader.epochs, reader.best, reader.last_epoch) == (
            writer.epochs,
            writer.best,
            epoch,
        )
        assert reader.load_best() == writer.load_best()
    assert reader.should_stop
    with pytest.raises(files.FolderInUseError):
        update(reader, 3, 0.1)
    assert reader.last_epoch == 2


def test_the_same_settings_on_another_folder_begin_anew(tmp_path: Path) -> None:
    selector = CheckpointSelector(
        tmp_path / "a", RULE, top_k=2, patience=3, min_delta=0.1, weights_only=False
    )
    update(selector, 1, 0.2)
    other = selector.renewed(tmp_path / "b")
    assert (other.top_k, other.patience, other.min_delta, other.weights_only) == (
        2,
        3,
        0.1,
        False,
    )
    assert (other.rule, other.epochs) == (RULE, [])


def test_settings_of_stopping_are_recorded(tmp_path: Path) -> None:
    update(CheckpointSelector(tmp_path, RULE, patience=2, min_delta=0.05), 1, 0.2)
    opened = CheckpointSelector.open(tmp_path)
    assert (opened.patience, opened.min_delta) == (2, 0.05)
    for mpcs in (0.16, 0.155):  # a better best epoch each time, but no progress
        update(opened, 2, mpcs)
    assert opened.should_stop
    with Refused("needs_patience", "min_delta", 0.1):
        CheckpointSelector(tmp_path / "new", RULE, min_delta=0.1)
    for min_delta in (-1.0, float("inf")):
        with Refused("finite_at_least", "min_delta", min_delta, minimum=0):
            CheckpointSelector(tmp_path / "new", RULE, patience=1, min_delta=min_delta)


def test_a_model_or_an_update_without_an_epoch_is_refused_by_a_sentence(
    tmp_path: Path,
) -> None:
    selector, model = CheckpointSelector(tmp_path, RULE), torch.nn.Linear(1, 1)
    with Refused("no_epoch", "epoch"):
        selector.update(model)
    with Refused("loadable_state", "state", type="Linear"):
        selector.update(model, epoch=0, mpcs=0.1, accuracy=0.5)
    assert not selector.epochs
    careless = CheckpointSelector(tmp_path / "careless", RULE, weights_only=False)
    careless.update(model, epoch=0, mpcs=0.1, accuracy=0.5)
    assert isinstance(careless.load_best(), torch.nn.Linear)


def test_each_reason_why_there_is_no_best_is_told(tmp_path: Path) -> None:
    selector = CheckpointSelector(
        tmp_path, SelectionRule("mpcs", RULE.directions, at_most={"mpcs": 0.1})
    )
    with Refused("recorded", str(tmp_path), raises=FileNotFoundError):
        selector.load_best()
    update(selector, 0, 0.2)
    with Refused("within_limits", f"{tmp_path}:", raises=FileNotFoundError, epochs=1):
        selector.load_best()


def test_missing_metrics_and_wrong_counts_are_refused(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    missing = {"metrics": "accuracy", "given": "mpcs"}
    with Refused("metric_of_rule", raises=ValueError, **missing):
        selector.update({}, epoch=1, mpcs=0.1)
    wrong = {"patience": (2.5, "3"), "top_k": (1.5,)}
    for name, value in [
        (name, value) for name, values in wrong.items() for value in values
    ]:
        with Refused("whole", name, value):
            CheckpointSelector(tmp_path, RULE, **{name: value})
    with Refused("at_least", "top_k", 0, minimum=1):
        CheckpointSelector(tmp_path, RULE, top_k=0)
    with Refused("list_of_names", "keep_best_by", "mpcs"):
        CheckpointSelector(tmp_path, RULE, keep_best_by="mpcs")
    with Refused("some_state", "state"):
        selector.update(lambda: None, epoch=1, mpcs=0.1, accuracy=0.5)
    assert not selector.epochs
    with pytest.raises(InvalidValueError):
        CheckpointSelector("", RULE)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_kills_lose_nothing(kills: int, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.learning.kill_selector",
        str(tmp_path),
        str(kills),
    ]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert result.returncode == 0, result.stderr
    found = re.search(r"killed (\d+) times", result.stdout)
    assert found is not None
    assert int(found[1]) >= kills
