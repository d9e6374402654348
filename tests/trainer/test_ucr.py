"""UCR files that no one here has seen: three layouts, odd labels, broken lines."""

import os
import re
import time
from pathlib import Path

import pytest
import torch

from mpcs_torch.trainer.data import DataError
from mpcs_torch.trainer.data.ucr import load_ucr
from mpcs_torch.trainer.sources import ucr_files as ucr

TRAIN = [[0.5, -1.25, 3.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def write(root: Path, layout: str, labels: list[str], series: list[list[float]] = TRAIN, part: str = "TRAIN") -> Path:
    folder = root / "UCR" / "Unseen"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"Unseen_{part}.{layout}"
    pairs = list(zip(labels, series, strict=True))
    if layout == "ts":
        header = f"# a comment\n@problemName Unseen\n@univariate true\n@classLabel true {' '.join(labels)}\n@data\n"
        lines = [",".join(map(str, values)) + ":" + label for label, values in pairs]
        path.write_text(header + "\n".join(lines) + "\n")
    elif layout == "tsv":
        path.write_text("".join("\t".join([label, *map(str, values)]) + "\n" for label, values in pairs))
    else:
        path.write_text(
            "".join("  " + "  ".join([label, *(f"{v:.7e}" for v in values)]) + "\n" for label, values in pairs)
        )
    return path


@pytest.mark.parametrize("layout", ["tsv", "ts", "txt"])
@pytest.mark.parametrize(
    ("labels", "numbered", "names"),
    [
        (["1", "-1", "1"], [1, 0, 1], ("-1", "1")),
        (["3", "7", "9"], [0, 1, 2], ("3", "7", "9")),
        (["10", "9", "10"], [1, 0, 1], ("9", "10")),
        (["walk", "run", "walk"], [1, 0, 1], ("run", "walk")),
        (["1.0000000e+00", "2.0000000e+00", "1.0000000e+00"], [0, 1, 0], ("1", "2")),
    ],
)
def test_any_labels_in_any_layout(
    tmp_path: Path, layout: str, labels: list[str], numbered: list[int], names: tuple[str, ...]
) -> None:
    write(tmp_path, layout, labels)
    write(tmp_path, layout, labels[:2], TRAIN[1:], part="TEST")
    data = load_ucr(tmp_path, set="Unseen")
    assert data.class_names == names
    assert data.train.labels.tolist() == numbered
    assert data.test.labels.tolist() == numbered[:2]
    assert torch.equal(data.train.inputs, torch.tensor(TRAIN).unsqueeze(-1))
    assert torch.equal(data.test.inputs, torch.tensor(TRAIN[1:]).unsqueeze(-1))


@pytest.mark.parametrize(
    ("layout", "text", "message"),
    [
        ("tsv", "1\t2\t3\n1\t2\n", r"TRAIN.tsv: series must have one length, 2, but have \[1, 2\]"),
        ("tsv", "1\t2\tNaN\n", r"TRAIN.tsv:1: a value is missing, and nothing here fills it in"),
        ("tsv", "1\t2\t3\n1\t2\tx\n", r"TRAIN.tsv:2: could not convert string to float: 'x'"),
        ("tsv", "\n", r"TRAIN.tsv: holds no series"),
        ("ts", "@data\n1,2,?:1\n", r"TRAIN.ts:2: a value is missing"),
        ("ts", "@data\n1,2:3,4:1\n", r"TRAIN.ts:2: must hold one dimension, a colon and a label"),
        ("ts", "@data\n1,2,3\n", r"TRAIN.ts:2: must hold one dimension, a colon and a label"),
    ],
)
def test_broken_files_are_named_with_their_lines(tmp_path: Path, layout: str, text: str, message: str) -> None:
    write(tmp_path, layout, ["1", "1", "1"], part="TEST")
    write(tmp_path, layout, ["1", "2", "1"]).write_text(text)
    with pytest.raises(DataError, match=message):
        load_ucr(tmp_path, set="Unseen")


def test_a_test_label_that_was_never_trained_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "tsv", ["1", "2", "1"])
    write(tmp_path, "tsv", ["1", "2", "3"], part="TEST")
    with pytest.raises(DataError, match=r"TEST.tsv: label 3 does not occur in the training file"):
        load_ucr(tmp_path, set="Unseen")


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Unseen must hold Unseen_TRAIN.tsv, .ts or .txt, but has none of them"):
        load_ucr(tmp_path, set="Unseen")


@pytest.mark.parametrize(
    ("name", "train", "steps", "classes"), [("Chinatown", 20, 24, 2), ("SmoothSubspace", 150, 15, 3)]
)
def test_the_papers_sets_are_read_from_the_data_root(
    data_root: Path, name: str, train: int, steps: int, classes: int
) -> None:
    data = load_ucr(data_root, set=name)
    assert data.train.inputs.shape == (train, steps, 1)
    assert data.train.labels.unique().tolist() == list(range(classes))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\t2\t\xff\n", "TRAIN.tsv: must be UTF-8 text"),
        (b"1\t2\t1e400\n", "TRAIN.tsv:1: a value is not finite in float32"),
        (b"1\t2\t1e39\n", "TRAIN.tsv:1: a value is not finite in float32"),
        (b"1\n", "TRAIN.tsv:1: a value is missing"),
        (b"1\t2\t" + b"x" * 10_000, f"TRAIN.tsv:1: could not convert string to float: '{'x' * 40}"),
        (b"\x1b[31m\t2\t3\n", r"TRAIN.tsv:1: must have a label without control characters, but it is '\x1b[31m'"),
        (b",\n", "TRAIN.tsv:1: must have a label"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    write(tmp_path, "tsv", ["1", "1", "1"], part="TEST")
    write(tmp_path, "tsv", ["1", "2", "1"]).write_bytes(content)
    with pytest.raises(DataError, match=re.escape(message)):
        load_ucr(tmp_path, set="Unseen")


def test_a_pipe_and_a_huge_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "tsv", ["1", "2", "1"], part="TEST")
    path = write(tmp_path, "tsv", ["1", "2", "1"])
    monkeypatch.setattr(ucr, "MOST_DATA_BYTES", 10)
    with pytest.raises(DataError, match=r"TRAIN.tsv: must have at most 10 bytes, but has \d+"):
        load_ucr(tmp_path, set="Unseen")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"must hold Unseen_TRAIN.tsv"):
        load_ucr(tmp_path, set="Unseen")


def test_large_labels_stay_apart(tmp_path: Path) -> None:
    labels = ["9223372036854775808", "9223372036854775809", "1e300"]
    for part in ("TRAIN", "TEST"):
        write(tmp_path, "tsv", labels, part=part)
    assert load_ucr(tmp_path, set="Unseen").class_names == tuple(labels)


def test_many_labels_take_little_time(tmp_path: Path) -> None:
    labels = [f"a{label}" for label in range(20_000)]
    for part in ("TRAIN", "TEST"):
        write(tmp_path, "tsv", labels, [[1.0]] * len(labels), part=part)
    started = time.process_time()
    assert len(load_ucr(tmp_path, set="Unseen").class_names) == len(labels)
    assert time.process_time() - started < 2, "seconds"


@pytest.mark.parametrize("name", ["..", "../Unseen", "a/b", "", "a\n"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="names of UCR sets have letters, digits, - and _, but got"):
        load_ucr(tmp_path, set=name)
