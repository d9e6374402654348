"""Texts and values that others wrote: quoted as they are, in short, and without control of the terminal."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpcs_torch.errors import InvalidValueError, Rule
from mpcs_torch.evaluation.calibration_files import (
    KIND,
    SavedCalibration,
    load_calibration,
    new_calibration,
    save_calibration,
)
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from mpcs_torch.io.artifacts import save_artifact
from tests.evaluation.files.test_hostile_files import read, refused, trials
from tests.refused import refused_file, sentence


@pytest.mark.parametrize(
    "label", ["1e300", "9223372036854775809", "-9007199254740993", "9" * 400]
)
def test_labels_of_any_size_are_quoted_as_they_are(tmp_path: Path, label: str) -> None:
    (tmp_path / "p.csv").write_text(f"0,1,target\n0.5,0.5,0\n0.5,0.5,{label}\n")
    refused("label_of, row 2", tmp_path / "p.csv", value=label)


def test_a_column_of_trials_without_a_name_is_a_column(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.table({"": ["a", "b"], "label": [1, 0], "score": [1.0, 2.0]}),
        tmp_path / "t.parquet",
    )
    read = read_trials(tmp_path / "t.parquet", ReadOptions(by=[""]), lambda _: None)
    assert read.groups[""].names == ["a", "b"]


def test_labels_of_64_bits_do_not_become_negative(tmp_path: Path) -> None:
    labels = np.array([1, 2**63 + 1], dtype=np.uint64)
    np.save(tmp_path / "p.npy", np.full((2, 2), 0.5))
    np.save(tmp_path / "t.npy", labels)
    np.savez(tmp_path / "p.npz", preds=np.full((2, 2), 0.5), target=labels)
    torch.save(
        {"preds": torch.full((2, 2), 0.5), "target": torch.from_numpy(labels)},
        tmp_path / "p.pt",
    )
    for files in (
        [tmp_path / "p.npy", tmp_path / "t.npy"],
        [tmp_path / "p.npz"],
        [tmp_path / "p.pt"],
    ):
        refused("label_of, row 2", *files, classes=("0", "1"))
    np.save(tmp_path / "t.npy", np.array([1, 0], dtype=np.uint64))
    assert read(tmp_path / "p.npy", tmp_path / "t.npy") == 2


def test_labels_that_are_whole_numbers_may_be_written_as_floats(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("0,1,target\n0.5,0.5,1.0\n0.5,0.5,1e0\n")
    assert Predictions(tmp_path / "p.csv").rows().target.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\nb", "a\u202eb", "a\x7f", "a\x9b31m"])
def test_classes_are_not_named_by_control_characters(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.csv").write_text(f'"{name}",b,target\n0.5,0.5,0\n', encoding="utf-8")
    refused("printable_names", tmp_path / "p.csv", name=name)


def test_names_of_classes_may_be_of_any_script(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "\u0645\u06cc\u200c\u0631\u0648\u0645,👩\u200d🔬,target\n0.5,0.5,👩\u200d🔬\n",
        encoding="utf-8",
    )
    assert read(tmp_path / "p.csv") == 1


def test_messages_are_short_and_control_no_terminal(tmp_path: Path) -> None:
    bad = "\x1b[2J" + "x" * 10_000
    (tmp_path / "\x1b[31mp.csv").write_text(
        "0,1,target\n" + "0.5,0.5,0\n" * 200 + f"{bad},0.5,0\n"
    )
    (tmp_path / "s.txt").write_text("0.5 1\n0.4 0\n" * 100 + f"{bad} 1\n")
    (tmp_path / "pairs").write_text("\x1b]0;a b 1\n\x1b]0;a b 1\n")
    for reader, name in ((read, "\x1b[31mp.csv"), (trials, "s.txt")):
        with refused_file("number, row 201") as long:
            reader(tmp_path / name)
        assert r"must be a number, but is '\x1b[2Jxxx" in str(long.value)
        assert str(long.value).isprintable()
        assert len(str(long.value)) < 200 + len(str(tmp_path))
    with refused_file("different_ids, row 2") as repeated:
        read_trials(
            tmp_path / "pairs", ReadOptions(labels=tmp_path / "pairs"), lambda rows: None
        )
    assert str(repeated.value).isprintable()


NESTED: list[Any] = ["\x1b[31m"]
for _ in range(60):
    NESTED = [NESTED, NESTED]  # 2^60 texts


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"method": NESTED}, sentence("unknown_method", "method")),
        ({"method": "bayes"}, sentence("unknown_method", "method", "bayes")),
        ({"method": torch.zeros(3)}, sentence("unknown_method", "method", torch.zeros(3))),
        (
            {"from_logits": "yes"},
            sentence("one_of", "from_logits", "yes", choices=[True, False]),
        ),
        (
            {"class_names": ["a", "\x1b[31m"]},
            sentence("plain_names", "class names", ["\x1b[31m"]),
        ),
        ({"class_names": ["a", "a"]}, sentence("plain_names", "class names")),
        ({"class_names": 3}, "'int' object is not iterable"),
        (
            {"state": {"temperature": torch.tensor(torch.nan)}},
            sentence("finite", "temperature"),
        ),
        ({"state": [1]}, "'list' object has no attribute"),
        (
            {"state": {}},
            r"Error\(s\) in loading state_dict for TemperatureScaling: Missing key",
        ),
        (
            {"method": "pav", "state": {"scores": torch.zeros(1).double().expand(10**11)}},
            "tensors " + re.escape(str(Rule("contiguous", shape=(10**11,)))),
        ),
    ],
)
def test_damaged_calibrations_are_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    saved = SavedCalibration("temperature", new_calibration("temperature", 2), ("a", "b"))
    save_calibration(saved, tmp_path / "c")
    assert load_calibration(tmp_path / "c").class_names == ("a", "b")
    held = torch.load(tmp_path / "c", weights_only=True)
    assert held["kind"] == KIND
    save_artifact({**held, **changed}, tmp_path / "c", kind=KIND)
    with pytest.raises(
        InvalidValueError, match=f"c: its calibration is damaged: {message}"
    ) as told:
        load_calibration(tmp_path / "c")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 400 + len(str(tmp_path))
