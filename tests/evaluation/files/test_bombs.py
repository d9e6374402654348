"""Small files that unpack to gigabytes are refused by name, within seconds and before they fill the memory."""

import json
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.io import untrusted_files
from mpcs_torch.io.untrusted_files import (
    FREE_BYTES,
    MAX_EXPANSION,
    VARIABLE,
    FileRuleError,
    max_unpacked,
)
from tests.evaluation.files.bombs import BOMBS, refusal
from tests.refused import Refused, refused_file

OTHER_RULES = {
    "p.csv.xz": "is a binary file of no known format",
    "shape.npz": "must have all values of its shape",
    "lying.xlsx": "Bad CRC-32",
    "packed.pt": "must not be packed",
}
"""The faults of the files that are refused for another reason than their unpacked size."""
MAX_SECONDS = 10


def check_refusal(path: Path, message: str) -> None:
    assert message.startswith(f"{path}: "), message
    if path.name in OTHER_RULES:
        assert OTHER_RULES[path.name] in message
    else:
        limit, unpacked = re.findall(
            r"at most (\d+) bytes, .* unpack to (\d+) or more", message
        )[0]
        assert int(unpacked) > int(limit)
        assert VARIABLE in message


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_of_each_format_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1000000")
    BOMBS[name](tmp_path / name, 20_000_000)
    check_refusal(tmp_path / name, refusal(tmp_path / name))


@pytest.mark.slow
def test_bombs_are_refused_within_seconds_in_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.evaluation.files.bombs", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    refusals = [json.loads(line) for line in printed.splitlines()]
    assert [one["name"] for one in refusals] == [
        *BOMBS
    ]  # a process that runs out of memory prints nothing
    for one in refusals:
        check_refusal(tmp_path / one["name"], one["message"])
    assert {
        one["name"]: one["seconds"] for one in refusals if one["seconds"] > MAX_SECONDS
    } == {}


def test_files_that_are_not_packed_may_have_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, labels = np.random.default_rng(0).random((1000, 2)), np.arange(1000) % 2
    columns = pyarrow.table(
        {"a": scores[:, 0], "b": scores[:, 1], "label": labels, "name": ["x"] * 1000}
    )
    np.savez(tmp_path / "p.npz", preds=scores, target=labels)
    np.save(tmp_path / "p.npy", scores)
    torch.save(
        {"preds": torch.from_numpy(scores), "target": torch.from_numpy(labels)},
        tmp_path / "p.pt",
    )
    parquet.write_table(
        columns, tmp_path / "p.parquet", compression="none", use_dictionary=False
    )
    (tmp_path / "p.csv").write_text("a,b,label\n" + "0.5,0.5,1\n" * 1000)
    monkeypatch.setenv(VARIABLE, "1000")
    for path in tmp_path.iterdir():
        table = open_table(path)
        assert table.read(table.names).rows == 1000


def test_the_limit_is_the_size_on_disk_times_a_factor_up_to_half_of_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(untrusted_files, "memory_bytes", lambda: 100 * FREE_BYTES)
    assert max_unpacked(1000) == FREE_BYTES
    assert max_unpacked(FREE_BYTES // 10) == MAX_EXPANSION * (FREE_BYTES // 10)
    assert max_unpacked(FREE_BYTES) == 50 * FREE_BYTES
    assert max_unpacked(60 * FREE_BYTES) == 60 * FREE_BYTES
    monkeypatch.setenv(VARIABLE, "1000")
    assert (max_unpacked(999), max_unpacked(1001)) == (1000, 1001)


@pytest.mark.parametrize("chosen", ["", "1e9", "-1", "2 GB"])
def test_a_limit_that_is_no_number_is_refused(
    chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, chosen)
    with Refused("whole_bytes", "MPCS_MAX_BYTES", raises=FileRuleError):
        max_unpacked(1000)


def test_a_container_has_no_more_memory_than_its_machine() -> None:
    machine = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < untrusted_files.memory_bytes() <= machine


def test_names_of_many_rows_may_be_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.evaluation.files.hdf5.FREE_BYTES", 1)
    with h5py.File(tmp_path / "k.h5", "w") as file:
        file["modelset"], file["segset"] = ["Änn", "bob"], ["x", "y", "z"]
        file["trial_mask"] = np.ones((2, 3), np.int8)
    table = open_table(tmp_path / "k.h5").read(["enrollment", "test"])
    assert table.columns["enrollment"].to_pylist() == ["Änn"] * 3 + ["bob"] * 3
    assert table.columns["test"].to_pylist() == ["x", "y", "z"] * 2


def test_long_texts_of_a_parquet_file_are_read_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{row:05}" * 20 for row in range(500)] + ["short"] * 500
    for encoding in (
        {},
        {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}},
    ):
        parquet.write_table(
            pyarrow.table({"name": texts, "list": [["a", "b"]] * 1000}),
            tmp_path / "p.parquet",
            **encoding,
        )
        monkeypatch.setattr("mpcs_torch.evaluation.files.unpacked_columns.FREE_BYTES", 2000)
        read = open_table(tmp_path / "p.parquet").read(["name"])
        assert read.columns["name"].to_pylist() == texts


def test_names_of_columns_have_a_limit(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"{'x' * 1001},label\n0.5,1\n")
    with refused_file("length_of_names", maximum=1000, length=1001):
        open_table(tmp_path / "p.csv")


def test_a_first_line_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.evaluation.files.delimited.MAX_LINE_BYTES", 1000)
    (tmp_path / "p.csv").write_text("x" * 100_000)
    with refused_file("size_at_most", argument="the first line", maximum=1000):
        open_table(tmp_path / "p.csv")
