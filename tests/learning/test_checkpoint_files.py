"""A manifest of somebody else is data: it names no file but the selector's own, and what is wrong is an error."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.learning import CheckpointSelector, SelectionRule, checkpoint_files
from mpcs_torch.learning.checkpoint_files import Manifest
from tests.refused import Refused, sentence

RULE = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"})


def written(folder: Path) -> dict[str, Any]:
    """Write a manifest of one epoch; return it with the epoch in its first line."""
    selector = CheckpointSelector(folder, RULE)
    selector.update({"weight": torch.tensor(1)}, epoch=1, mpcs=0.5, accuracy=0.5)
    first, update, _ = (folder / checkpoint_files.MANIFEST).read_text().split("\n")
    return {**json.loads(first), "epochs": [json.loads(update)]}


def write(folder: Path, plain: dict[str, Any], *, as_line: bool) -> None:
    lines = (
        [json.dumps({**plain, "epochs": []}), *map(json.dumps, plain["epochs"])]
        if as_line
        else [json.dumps(plain)]
    )
    (folder / checkpoint_files.MANIFEST).write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("as_line", [False, True])
@pytest.mark.parametrize(
    "name",
    ["../victim.txt", "/ABSOLUTE", "victim.txt", "epoch-00002.pt", "epoch-00001.pt/../v"],
)
def test_no_file_but_its_own_is_ever_deleted(
    tmp_path: Path, name: str, as_line: bool
) -> None:
    folder = tmp_path / "checkpoints"
    plain = written(folder)
    victims = [tmp_path / "victim.txt", folder / "victim.txt", folder / "epoch-00002.pt"]
    for victim in victims:
        victim.write_text("mine")
    file = name.replace("/ABSOLUTE", str(victims[0]))
    sha256 = hashlib.sha256(b"mine").hexdigest()
    plain["epochs"][0] |= {"file": file, "sha256": sha256}
    write(folder, plain, as_line=as_line)
    for use in (
        lambda: CheckpointSelector(folder, RULE, resume=True),
        lambda: checkpoint_files.delete_checkpoints(folder),
    ):
        with pytest.raises(
            InvalidValueError, match=sentence("named_after_epoch", "the file of epoch 1")
        ):
            use()
    assert all(victim.read_text() == "mine" for victim in victims)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"number": "1"}, sentence("whole", "the number of an epoch", "1")),
        ({"number": True}, sentence("whole", "the number of an epoch", True)),
        ({"number": 1.0}, sentence("whole", "the number of an epoch", 1.0)),
        ({"values": {"mpcs": "low"}}, sentence("number", "'mpcs' of epoch 1", "low")),
        ({"values": {"mpcs": None}}, sentence("number", "'mpcs' of epoch 1", None)),
        ({"values": {"mpcs": 10**400}}, "OverflowError"),
        ({"values": [1]}, sentence("mapping", "the values of epoch 1", [1])),
        (
            {"values": {"accuracy": 1}},
            sentence("metric_of_epoch", metric="mpcs", epoch=1),
        ),
        ({"sha256": 3}, sentence("text", "sha256", 3)),
        ({"file": 3}, sentence("named_after_epoch", "the file of epoch 1", 3)),
        ({"colour": "\x1b[31m" * 10_000}, "unexpected keyword argument 'colour'"),
        (
            {"file": "\x1b[31m" * 10_000},
            sentence("named_after_epoch", "the file of epoch 1") + r".*'\\x1b",
        ),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("as_line", [False, True])
def test_fields_of_another_type_are_refused_briefly(
    tmp_path: Path, changed: dict[str, Any], message: str, as_line: bool
) -> None:
    plain = written(tmp_path)
    plain["epochs"][0] |= changed
    write(tmp_path, plain, as_line=as_line)
    with pytest.raises(InvalidValueError, match=message) as error:
        CheckpointSelector(tmp_path, RULE, resume=True)
    assert len(str(error.value)) < 300 + len(str(tmp_path))
    assert str(error.value).isprintable()
    assert (tmp_path / "epoch-00001.pt").exists()


def test_a_file_that_was_not_kept_is_never_dropped(tmp_path: Path) -> None:
    plain = written(tmp_path)
    (tmp_path / "epoch-00002.pt").write_text("mine")
    for dropped in (["epoch-00002.pt"], ["../mine"], [3], 3, "epoch-00002.pt"):
        plain["epochs"][0]["dropped"] = dropped
        write(tmp_path, plain, as_line=True)
        with Refused("manifest"):
            CheckpointSelector(tmp_path, RULE, resume=True)
    assert (tmp_path / "epoch-00002.pt").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[" * 100_000,
            '{"a":' * 100_000,
            "\x00",
            "9" * 10_000,
            "\ufeff{}",
            "",
            "{",
            "[]",
            '{"rule": {}}',
        ),
        '{"rule": 1, "epochs": 2, "settings": {}}',
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / checkpoint_files.MANIFEST).write_text(f"{text}\n")
    with Refused("manifest"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_line_that_was_cut_off_is_named_by_its_number(tmp_path: Path, line: int) -> None:
    lines = ['{"rule": {}, "settings": {}, "epochs": []}']
    lines += [json.dumps({"number": epoch, "values": {}}) for epoch in range(2)]
    lines[line - 1] = lines[line - 1][:10]
    path = tmp_path / checkpoint_files.MANIFEST
    path.write_text("".join(f"{each}\n" for each in lines))
    with pytest.raises(InvalidValueError, match=f"{re.escape(str(path))}.* line {line} "):
        Manifest.read(tmp_path)


def test_an_object_of_another_kind_is_told_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / checkpoint_files.MANIFEST).write_text('{"name": "a web app", "rule": {}}\n')
    with pytest.raises(
        InvalidValueError,
        match=sentence("keys_of_line", "its first line", missing=["settings", "epochs"]),
    ):
        Manifest.read(tmp_path)


def test_a_huge_manifest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setattr(checkpoint_files, "MAX_BYTES", 10)
    with pytest.raises(InvalidValueError, match=sentence("size_at_most", maximum=10)):
        Manifest.read(tmp_path)
