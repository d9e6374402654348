"""UCR files that no one here has seen: both layouts, odd labels, broken lines."""

import time
from pathlib import Path

import pytest
import torch

from mpcs_torch.trainer.data import DataError, load_ucr
from tests.refused import Refused

TRAIN = [[0.5, -1.25, 3.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def write(
    root: Path,
    layout: str,
    labels: list[str],
    series: list[list[float]] = TRAIN,
    part: str = "TRAIN",
) -> Path:
    folder = root / "UCR" / "Unseen"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"Unseen_{part}.{layout}"
    pairs = list(zip(labels, series, strict=True))
    if layout == "ts":
        header = f"# a comment\n@problemName Unseen\n@univariate true\n@classLabel true {' '.join(labels)}\n@data\n"
        lines = [",".join(map(str, values)) + ":" + label for label, values in pairs]
        path.write_text(header + "\n".join(lines) + "\n")
    else:
        path.write_text(
            "".join("\t".join([label, *map(str, values)]) + "\n" for label, values in pairs)
        )
    return path


@pytest.mark.parametrize("layout", ["tsv", "ts"])
@pytest.mark.parametrize(
    ("labels", "numbered", "names"),
    [
        (["1", "-1", "1"], [1, 0, 1], ("-1", "1")),
        (["3", "7", "9"], [0, 1, 2], ("3", "7", "9")),
        (["10", "9", "10"], [1, 0, 1], ("9", "10")),
        (["walk", "run", "walk"], [1, 0, 1], ("run", "walk")),
    ],
)
def test_any_labels_in_any_layout(
    tmp_path: Path,
    layout: str,
    labels: list[str],
    numbered: list[int],
    names: tuple[str, ...],
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
    write(tmp_path, layout, ["1", "1", "1"], part="TEST")
    write(tmp_path, layout, ["1", "2", "1"]).write_bytes(content)
    place = f"{tmp_path / 'UCR' / 'Unseen' / 'Unseen_TRAIN'}.{layout}:"
    with Refused("caused_by", place, raises=DataError):
        load_ucr(tmp_path, set="Unseen")


def test_a_test_label_that_was_never_trained_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "tsv", ["1", "2", "1"])
    write(tmp_path, "tsv", ["1", "2", "3"], part="TEST")
    with Refused("labels_of_training", "UCR set 'Unseen':", labels=["3"], raises=DataError):
        load_ucr(tmp_path, set="Unseen")


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with Refused("ucr_file", stem="Unseen_TRAIN", name="Unseen", raises=DataError):
        load_ucr(tmp_path, set="Unseen")


@pytest.mark.parametrize(
    ("name", "train", "steps", "classes"),
    [("Chinatown", 20, 24, 2), ("SmoothSubspace", 150, 15, 3)],
)
def test_the_papers_sets_are_read_from_the_data_root(
    data_root: Path, name: str, train: int, steps: int, classes: int
) -> None:
    data = load_ucr(data_root, set=name)
    assert data.train.inputs.shape == (train, steps, 1)
    assert data.train.labels.unique().tolist() == list(range(classes))


def test_many_labels_take_little_time(tmp_path: Path) -> None:
    labels = [f"a{label}" for label in range(20_000)]
    for part in ("TRAIN", "TEST"):
        write(tmp_path, "tsv", labels, [[1.0]] * len(labels), part=part)
    started = time.process_time()
    assert len(load_ucr(tmp_path, set="Unseen").class_names) == len(labels)
    assert time.process_time() - started < 2, "seconds"
