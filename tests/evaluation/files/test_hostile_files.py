"""Files that others wrote are data: reading one runs no code, fills no memory, and ends."""

import os
import pickle
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import feather, parquet

from mpcs_torch.errors import InvalidValueError, MpcsError
from mpcs_torch.evaluation.calibration_files import load_calibration
from mpcs_torch.evaluation.files.changed_trials import rewrite_scores
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from mpcs_torch.io.artifacts import sealed
from mpcs_torch.io.untrusted_files import VARIABLE
from mpcs_torch.learning import DecisionRule
from tests.refused import refused_file


def read(path: Path, labels: Path | None = None) -> int:
    opened = Predictions(path, ReadOptions(labels=labels))
    return len(opened.rows().scores)


def refused(refusal: str, *files: Path, **fields: Any) -> None:
    with refused_file(f"{files[0].name}: {refusal}", **fields):
        read(*files)


def trials(path: Path) -> object:
    return read_trials(path, ReadOptions(), lambda rows: None)


def rewrite(path: Path, out: Path) -> object:
    return rewrite_scores(
        path, out, lambda scores: scores, ReadOptions(), lambda rows: None
    )


class Malicious:
    """Would create a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_no_file_runs_code(tmp_path: Path) -> None:
    mark = tmp_path / "was here"
    torch.save({"preds": Malicious(mark), "target": torch.zeros(1)}, tmp_path / "p.pt")
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"preds": Malicious(mark)}))
    array = np.array([[Malicious(mark), 1]])
    np.save(tmp_path / "p.npy", array, allow_pickle=True)
    np.savez(tmp_path / "p.npz", preds=array, target=array)
    for name in ("p.pt", "old.pt", "p.npy", "p.npz"):
        with pytest.raises(PredictionsError):
            read(tmp_path / name, tmp_path / "p.npy" if name == "p.npy" else None)
    with pytest.raises(InvalidValueError):
        load_calibration(tmp_path / "p.pt")
    with pytest.raises(InvalidValueError):
        DecisionRule.load(tmp_path / "p.pt")
    assert not mark.exists()
    torch.load(tmp_path / "p.pt", weights_only=False)
    assert mark.exists(), "the file is not malicious"


def npy(header: bytes, version: bytes = b"\x01\x00", size: bytes | None = None) -> bytes:
    return (
        b"\x93NUMPY"
        + version
        + (len(header).to_bytes(2, "little") if size is None else size)
        + header
    )


@pytest.mark.parametrize(
    "content",
    [
        npy(b"", b"\x02\x00", b"\xff\xff\xff\x7f"),
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, -1), }"),
        npy(
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 99999999999), }"
        ),
        npy(b"{'descr': '<f8,<f8', 'fortran_order': False, 'shape': (2, 2), }"),
        npy(b"(" * 9000),
        npy(b"-" * 9000 + b"1"),
        npy(b"'\\q'" + b"\x1b[31m"),
    ],
)
def test_odd_headers_of_arrays_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.npy").write_bytes(content)
    with pytest.raises(PredictionsError, match=r"p\.npy: "):
        read(*[tmp_path / "p.npy"] * 2)
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("preds.npy", content)
    with pytest.raises(PredictionsError, match=r"p\.npz: "):
        read(tmp_path / "p.npz")


def test_texts_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    texts = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    table = pyarrow.table({"target": texts, "a": [0.5, 0.5], "b": [0.5, 0.5]})
    parquet.write_table(table, tmp_path / "p.parquet")
    refused("readable", tmp_path / "p.parquet")
    feather.write_feather(table, str(tmp_path / "p.arrow"))
    refused("arrow_file", tmp_path / "p.arrow")


def test_tensors_that_repeat_one_value_are_refused(tmp_path: Path) -> None:
    torch.save(
        {"preds": torch.tensor([0.5]).expand(10**11, 2), "target": torch.zeros(1)},
        tmp_path / "p.pt",
    )
    assert (tmp_path / "p.pt").stat().st_size < 4000
    refused("contiguous", tmp_path / "p.pt", shape=(10**11, 2))
    torch.save(
        {"preds": torch.eye(3).to_sparse(), "target": torch.arange(3)}, tmp_path / "p.pt"
    )
    refused("dense_on_cpu", tmp_path / "p.pt")


def repack(path: Path, compression: int) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def one_hot(rows: int, classes: int) -> Any:
    scores = np.zeros((rows, classes))
    scores[:, 0] = 1
    return {"preds": scores, "target": np.zeros(rows, dtype=np.int64)}


def test_packed_files_of_tensors_are_refused(tmp_path: Path) -> None:
    torch.save({"preds": torch.zeros(1000, 50)}, tmp_path / "p.pt")
    repack(tmp_path / "p.pt", zipfile.ZIP_DEFLATED)
    refused("not_packed", tmp_path / "p.pt")
    (tmp_path / "p.pt").write_bytes(sealed((tmp_path / "p.pt").read_bytes()))
    for load in (load_calibration, DecisionRule.load):
        with pytest.raises(
            MpcsError,
            match=r"p.pt: is not a file of .* as it was written: must not be packed, but",
        ):
            load(tmp_path / "p.pt")


def test_arrays_that_expand_far_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "p.npz", **one_hot(2000, 100))
    assert read(tmp_path / "p.npz") == 2000
    monkeypatch.setenv(VARIABLE, "1000000")
    size = (tmp_path / "p.npz").stat().st_size
    refused(
        "unpacked_at_most", tmp_path / "p.npz", maximum=10**6, packed=size, unpacked=1600128
    )
    np.savez(tmp_path / "p.npz", **one_hot(2000, 100))
    assert read(tmp_path / "p.npz") == 2000
    repack(tmp_path / "p.npz", zipfile.ZIP_BZIP2)
    refused("known_compression", tmp_path / "p.npz")


@pytest.mark.slow
def test_tables_of_very_many_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(",".join(["a"] * 10**6))
    refused("columns_at_most", tmp_path / "p.csv", maximum=10**5)


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
def test_only_regular_files_are_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        for suffix in (".csv", ".npz", ".npy", ".pt", ".parquet", ".txt", ".h5"):
            path = tmp_path / f"s{suffix}"
            if kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "device":
                path.symlink_to("/dev/zero")
            elif suffix == ".csv":
                monkeypatch.chdir(tmp_path)  # the path of a socket must be short
                listening.bind("s.csv")
            else:
                path.symlink_to("s.csv")
            readers: list[Callable[[Path], object]] = [
                trials,
                load_calibration,
                DecisionRule.load,
            ]
            readers.append(lambda path: rewrite(path, path.with_name("out" + path.suffix)))
            if suffix not in (".txt", ".h5"):
                readers.append(read)
            for reader in readers:
                with pytest.raises(
                    MpcsError, match=f"must be a regular file, but is a {kind}"
                ):
                    reader(path)


def test_a_header_longer_than_what_is_read_first_is_read_whole(tmp_path: Path) -> None:
    names = [f"class number {number}" for number in range(10_000)]
    rows = [["1", *["0"] * 9_999, names[0]]] * 2
    (tmp_path / "p.csv").write_text(
        "\n".join(",".join(row) for row in ([*names, "target"], *rows))
    )
    assert read(tmp_path / "p.csv") == 2
