"""The right checkpoints stay intact on disk, even after kills, full disks and restarts."""

import errno
import gc
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.io import atomic_files as files
from mpcs_torch.learning import (
    CheckpointSelector,
    SelectionRule,
    checkpoint_files,
    checkpoint_selector,
)
from tests.power_failure import image_of
from tests.processes.forked import forked, succeeded
from tests.refused import Refused

RULE = SelectionRule("mpcs", {"mpcs": "min"})


def update(selector: CheckpointSelector, epoch: int, mpcs: float) -> None:
    selector.update({"weight": torch.tensor(epoch)}, epoch=epoch, mpcs=mpcs)


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "manifest.json")


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
    careless.update({"weight": Writer(mark)}, epoch=1, mpcs=0.1)
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
            lambda epoch=epoch: built.append(epoch) or {}, epoch=epoch, mpcs=mpcs
        )
    assert built == [1, 3]


def test_a_selector_that_is_gone_lets_another_process_write(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.3)
    del selector
    gc.collect()
    assert succeeded(
        [forked(lambda: update(CheckpointSelector(tmp_path, RULE, resume=True), 2, 0.2))]
    )


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


@pytest.mark.parametrize("at", ["checkpoint", "manifest", "last step"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_error_is_reported_and_keeps_the_old_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, code: int
) -> None:
    def full_disk(file: Any) -> None:
        file.write(b"half")
        raise OSError(code, os.strerror(code))

    def failing_append(folder: Path, size: int, *args: Any, **kwargs: Any) -> None:
        with (folder / checkpoint_files.MANIFEST).open("ab") as file:
            full_disk(file)

    def failing_rename(*args: Any, **kwargs: Any) -> None:
        raise OSError(code, os.strerror(code))

    selector = CheckpointSelector(tmp_path, RULE)
    update(selector, 1, 0.2)
    before = image_of(tmp_path)
    with monkeypatch.context() as patched:
        if at == "checkpoint":
            create_file = files.create_file
            patched.setattr(
                checkpoint_files,
                "create_file",
                lambda path, _, *, flush: create_file(path, full_disk, flush=flush),
            )
        elif at == "manifest":
            patched.setattr(checkpoint_files, "append", failing_append)
        else:
            patched.setattr(checkpoint_selector, "rename", failing_rename)
        with pytest.raises(
            OSError,
            match="cannot save the checkpoint of epoch 2; earlier checkpoints are kept: "
            + os.strerror(code),
        ):
            update(selector, 2, 0.1)
    assert image_of(tmp_path) == before
    update(selector, 2, 0.1)
    assert checkpoints(tmp_path) == ["epoch-00002.pt"]
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
    for name in ("epoch-00001.pt", ".gitkeep", ".epoch-notes.tmp", ".epoch-00002.pt.tmp"):
        (tmp_path / name).write_text("mine")
    selector = CheckpointSelector(tmp_path, RULE, resume=True)
    update(selector, 1, 0.2)
    update(selector, 2, 0.1)
    left = image_of(tmp_path)
    assert left.pop("epoch-00002.pt") != b"mine", "its own temporary files are replaced"
    del left["manifest.json"]
    assert left == dict.fromkeys(
        (".epoch-notes.tmp", ".gitkeep", "epoch-00001.pt"), b"mine"
    )


def test_another_rule_needs_another_folder(tmp_path: Path) -> None:
    update(CheckpointSelector(tmp_path, RULE), 1, 0.2)
    with Refused("same_rule", raises=ValueError, name="by"):
        CheckpointSelector(tmp_path, SelectionRule("loss", {"loss": "min"}), resume=True)


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


def test_a_model_is_saved_where_its_code_may_run(tmp_path: Path) -> None:
    careless = CheckpointSelector(tmp_path, RULE, weights_only=False)
    careless.update(torch.nn.Linear(1, 1), epoch=0, mpcs=0.1)
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


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("state", "values", "refusal"),
    [
        (
            {},
            {"epoch": 1, "loss": 0.1},
            Refused("metric_of_rule", raises=ValueError, metrics="mpcs", given="loss"),
        ),
        ({}, {"mpcs": 0.1}, Refused("no_epoch", "epoch")),
        (
            torch.nn.Linear(1, 1),
            {"epoch": 0, "mpcs": 0.1},
            Refused("loadable_state", "state", type="Linear"),
        ),
        (lambda: None, {"epoch": 0, "mpcs": 0.1}, Refused("some_state", "state")),
        (
            {"w": torch.zeros(2, device="meta")},
            {"epoch": 0, "mpcs": 0.1},
            Refused("has_values", "state['w']"),
        ),
        (ENDLESS, {"epoch": 0, "mpcs": 0.1}, Refused("no_recursion", "state")),
        (
            {"a": 2**5000},
            {"epoch": 0, "mpcs": 0.1},
            Refused("loads_by_weights_only", "state['a'], a builtins.int,"),
        ),
    ],
)
def test_an_update_that_could_not_be_loaded_again_is_refused(
    tmp_path: Path, state: Any, values: dict[str, Any], refusal: Refused
) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    with refusal:
        selector.update(state, **values)
    assert not selector.epochs
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"folder": ""}, Refused("empty_path", "folder")),
        ({"patience": 2.5}, Refused("whole", "patience", 2.5)),
        ({"patience": "3"}, Refused("whole", "patience", "3")),
        ({"top_k": 1.5}, Refused("whole", "top_k", 1.5)),
        ({"top_k": 0}, Refused("at_least", "top_k", 0, minimum=1)),
        ({"patience": 0}, Refused("at_least", "patience", 0, minimum=1)),
        (
            {"keep_at_most": 1, "top_k": 2},
            Refused("at_least", "keep_at_most", 1, minimum=2),
        ),
        ({"keep_best_by": "mpcs"}, Refused("list_of_names", "keep_best_by", "mpcs")),
        ({"keep_best_by": ["loss"]}, Refused("directed_metrics", "keep_best_by", "loss")),
        ({"min_delta": 0.1}, Refused("needs_patience", "min_delta", 0.1)),
        (
            {"min_delta": -1.0, "patience": 1},
            Refused("finite_at_least", "min_delta", -1.0, minimum=0),
        ),
        (
            {"min_delta": float("inf"), "patience": 1},
            Refused("finite_at_least", "min_delta", float("inf"), minimum=0),
        ),
        (
            {"rule": SelectionRule("state", {"state": "min"})},
            Refused("reserved_metric", "rule", name="state"),
        ),
    ],
)
def test_wrong_settings_are_refused(
    tmp_path: Path, settings: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        CheckpointSelector(**{"folder": tmp_path, "rule": RULE, **settings})
