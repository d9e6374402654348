"""UCR files that no one here has seen: both layouts, odd labels, broken lines."""

import time
from itertools import cycle
from pathlib import Path

import pytest
import torch

from mpcs_torch.trainer.data import DataError, load_ucr
from tests.refused import Refused

SERIES = [[0.5, -1.25, 3.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
HEADER = "# a comment\n@problemName Unseen\n@univariate true\n@classLabel true {}\n@data\n"


def write(root: Path, layout: str, part: str, labels: list[str]) -> Path:
    """Write a series for each label."""
    folder = root / "UCR" / "Unseen"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"Unseen_{part}.{layout}"
    with path.open("w") as file:
        if layout == "ts":
            file.write(HEADER.format(" ".join(labels)))
        for label, series in zip(labels, cycle(SERIES), strict=False):
            values = [str(value) for value in series]
            line = ",".join(values) + f":{label}"
            if layout == "tsv":
                line = "\t".join([label, *values])
            file.write(line + "\n")
    return path


@pytest.mark.parametrize("layout", ["tsv", "ts"])
@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["1", "-1", "1"], ("-1", "1")),
        (["3", "7", "9"], ("3", "7", "9")),
        (["10", "9", "10"], ("9", "10")),
        (["walk", "run", "walk"], ("run", "walk")),
    ],
)
def test_any_labels_in_any_layout(
    tmp_path: Path, layout: str, labels: list[str], names: tuple[str, ...]
) -> None:
    write(tmp_path, layout, "TRAIN", labels)
    write(tmp_path, layout, "TEST", labels[:2])
    data = load_ucr(tmp_path, set="Unseen")
    assert data.class_names == names
    assert data.train.labels.tolist() == [names.index(label) for label in labels]
    assert torch.equal(data.test.labels, data.train.labels[:2])
    assert torch.equal(data.train.inputs, torch.tensor(SERIES).unsqueeze(-1))
    assert torch.equal(data.test.inputs, data.train.inputs[:2])


@pytest.mark.parametrize(
    ("layout", "content"),
    [
        ("tsv", b"1\t2\t3\n1\t2\n"),
        ("tsv", b"1\t2\tNaN\n"),
        ("tsv", b"1\t2\t1e39\n"),
        ("tsv", b"1\t2\t3\n1\t2\tx\n"),
        ("tsv", b"1\n"),
        ("tsv", b"\n"),
        ("tsv", b"1\t2\t\xff\n"),
        ("ts", b"@data\n1,2,?:1\n"),
        ("ts", b"@data\n1,2:3,4:1\n"),
        ("ts", b"@data\n1,2,3\n"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, layout: str, content: bytes) -> None:
    write(tmp_path, layout, "TEST", ["1"])
    write(tmp_path, layout, "TRAIN", ["1", "2"]).write_bytes(content)
    place = f"{tmp_path / 'UCR' / 'Unseen' / 'Unseen_TRAIN'}.{layout}:"
    with Refused("caused_by", place, raises=DataError):
        load_ucr(tmp_path, set="Unseen")


def test_a_test_label_that_was_never_trained_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "tsv", "TRAIN", ["1", "2"])
    write(tmp_path, "tsv", "TEST", ["1", "3"])
    with Refused("labels_of_training", "UCR set 'Unseen':", labels=["3"], raises=DataError):
        load_ucr(tmp_path, set="Unseen")


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with Refused("ucr_file", stem="Unseen_TRAIN", name="Unseen", raises=DataError):
        load_ucr(tmp_path, set="Unseen")


def test_many_labels_take_little_time(tmp_path: Path) -> None:
    labels = [f"a{label}" for label in range(20_000)]
    for part in ("TRAIN", "TEST"):
        write(tmp_path, "tsv", part, labels)
    started = time.process_time()
    assert len(load_ucr(tmp_path, set="Unseen").class_names) == len(labels)
    assert time.process_time() - started < 2, "seconds"
