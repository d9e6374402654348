"""Keys and scores of SIDEKIT, BOSARIS and PyBOSARIS, and HDF5 files that break a rule."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from torch import Tensor

from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import TrialTable, read_trials
from tests.refused import refused_file

DATA = Path(__file__).parents[2] / "oracles" / "data" / "hdf5"
SCORES = ["sidekit-scores", "sidekit-matlab-scores", "pybosaris-scores"]
KEYS = ["sidekit-key", "pybosaris-key"]
LIST = "ann x target\nbob y target\nann y nontarget\nbob x nontarget\nbob z nontarget\n"
TEXT = "ann x 2.5\nbob y 1\nann y 0.5\nbob x -0.25\nbob z -1.5\n"


def read(scores: Path, trials: Path | None, **wanted: Any) -> TrialTable:
    options = ReadOptions(labels=trials, by=wanted.pop("by", ()))
    return read_trials(scores, options, lambda rows: None, **wanted)


def write(path: Path, **arrays: Any) -> Path:
    """Write scores, or a Key for a file called so, as SIDEKIT does, with some changed; None leaves one out."""
    usual = {"modelset": np.array([b"ann", b"bob"]), "segset": np.array([b"x", b"y", b"z"])}
    if path.name.startswith("k"):
        usual["trial_mask"] = np.array([[1, -1, 0], [-1, 1, -1]], dtype=np.int8)
    else:
        usual |= {
            "score_mask": np.ones((2, 3), dtype=np.int8),
            "scores": np.arange(6.0).reshape(2, 3),
        }
    with h5py.File(path, "w") as file:
        for name, value in {**usual, **arrays}.items():
            if value is not None:
                file[name] = value
    return path


@pytest.mark.parametrize("trials", [*KEYS, LIST])
@pytest.mark.parametrize("scores", [*SCORES, TEXT])
def test_files_of_each_toolkit_and_text_go_together(
    scores: str, trials: str, tmp_path: Path
) -> None:
    paths = [DATA / f"{name}.h5" for name in (scores, trials)]
    for place, text in enumerate((scores, trials)):
        if "\n" in text:
            paths[place] = tmp_path / f"{place}.txt"
            paths[place].write_text(text)
    found = read(*paths, named=True)
    assert found.names is not None
    rows = zip(found.names.to_pylist(), *map(Tensor.tolist, found.trials), strict=True)
    assert sorted(rows) == [
        ("ann x", 2.5, True),
        ("ann y", 0.5, False),
        ("bob x", -0.25, False),
        ("bob y", 1.0, True),
        ("bob z", -1.5, False),
    ]


def test_columns_of_a_matrix_may_be_groups() -> None:
    found = read(DATA / "sidekit-scores.h5", DATA / "sidekit-key.h5", by=["test"])
    assert found.groups["test"].names == ["z", "x", "y"]


@pytest.mark.parametrize("name", ["sidekit-ndx", "pybosaris-ndx"])
def test_an_ndx_is_read_as_trials_without_labels(name: str) -> None:
    ndx = DATA / f"{name}.h5"
    columns = open_table(ndx).read(["enrollment", "test", "label"]).columns
    assert columns["enrollment"].to_pylist() == ["ann", "ann", "bob", "bob", "bob"]
    assert columns["test"].to_pylist() == ["x", "y", "x", "y", "z"]
    assert columns["label"].to_pylist() == ["target"] * 5
    with refused_file("both_kinds_of_trials", missing="non-target"):
        read(DATA / "sidekit-scores.h5", ndx, named=True)


def test_scores_of_other_pairs_are_ignored_and_counted(tmp_path: Path) -> None:
    found = read(write(tmp_path / "s.h5"), write(tmp_path / "k.h5"))
    assert found.trials.scores.tolist() == [0, 1, 3, 4, 5]
    assert "1 rows without a label or a score left out" in found.read


FEWER = {
    "segset": np.array([b"x", b"z"]),
    "score_mask": np.ones((2, 2), dtype=np.int8),
    "scores": np.ones((2, 2)),
}
BOTH_KINDS = {
    "trial_mask": None,
    "tar_mask": np.eye(2, 3, dtype=bool),
    "non_mask": np.ones((2, 3), dtype=bool),
}


@pytest.mark.parametrize(
    ("name", "changed", "refusal"),
    [
        ("s.h5", {"modelset": None}, "trials"),
        ("k.h5", {"segset": None}, "dataset"),
        ("k.h5", {"trial_mask": None}, "trials"),
        ("k.h5", {"trial_mask": np.full((2, 3), 2)}, "between"),
        ("k.h5", {"trial_mask": np.full((3, 2), 1)}, "matrix_of_trials"),
        ("k.h5", {"trial_mask": np.zeros(6, dtype=np.int8)}, "matrix_of_trials"),
        ("k.h5", {"trial_mask": np.zeros((2, 3))}, "matrix_of_trials"),
        ("k.h5", BOTH_KINDS, "target_or_not"),
        ("s.h5", {"scores": np.ones((2, 3), dtype=int)}, "matrix_of_trials"),
        ("s.h5", {"scores": np.full((2, 3), np.nan)}, "number_in_mask"),
        ("s.h5", {"scores": np.ones((2, 2))}, "matrix_of_trials"),
        ("s.h5", {"scores": np.zeros((2, 3), dtype="f8,f8")}, "matrix_of_trials"),
        ("s.h5", {"segset": np.array([b"x", b"y", b"x"])}, "names"),
        ("k.h5", {"segset": np.array([b"x", b"", b"z"])}, "names"),
        ("s.h5", {"segset": np.array([b"x", b"\xff", b"z"])}, "utf_8"),
        ("s.h5", {"segset": np.arange(3)}, "names"),
        ("s.h5", {"modelset": np.array([(1, 2.0)] * 2)}, "names"),
        ("s.h5", {"segset": h5py.Empty("S1")}, "dataset"),
        (
            "s.h5",
            {"scores": h5py.ExternalLink(DATA / "sidekit-scores.h5", "/scores")},
            "in_file",
        ),
        ("s.h5", {"score_mask": np.array([[1, 0, 1], [1, 1, 1]])}, "rows_of_file"),
        ("s.h5", FEWER, "rows_of_file"),
    ],
)
def test_files_that_break_a_rule_are_refused(
    tmp_path: Path, name: str, changed: dict[str, Any], refusal: str
) -> None:
    for file in ("s.h5", "k.h5"):
        write(tmp_path / file, **(changed if file == name else {}))
    with refused_file(f"{name}: {refusal}"):
        read(tmp_path / "s.h5", tmp_path / "k.h5", named=True)


def external(file: h5py.File) -> None:
    file.create_dataset("scores", (2, 3), "f8", external=[("/etc/passwd", 0, 48)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((2, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "scores", (2, 3))
    file.create_virtual_dataset("scores", layout)


def incomplete(file: h5py.File) -> None:
    file.create_dataset("scores", (2, 3), "f8", chunks=(1, 3))[0] = 1.0


def empty(file: h5py.File) -> None:
    file.create_dataset("scores", (2, 3), "f8")


def huge(file: h5py.File) -> None:
    file.create_dataset("scores", (2**20, 2**20), "f8", chunks=(1, 2**10))


def huge_chunk(file: h5py.File) -> None:
    file.create_dataset(
        "scores",
        (2, 3),
        "f8",
        chunks=(2**14, 2**14),
        maxshape=(None, None),
        compression="gzip",
    )


@pytest.mark.parametrize(
    ("add", "refusal"),
    [
        (external, "in_file"),
        (virtual, "in_file"),
        (incomplete, "stored"),
        (empty, "stored"),
        (huge, "unpacked_at_most"),
        (huge_chunk, "unpacked_at_most"),
    ],
)
def test_datasets_that_are_elsewhere_incomplete_or_too_large_are_refused(
    tmp_path: Path, add: Callable[[h5py.File], None], refusal: str
) -> None:
    path = write(tmp_path / "s.h5", scores=None)
    with h5py.File(path, "a") as file:
        add(file)
    with refused_file(refusal):
        read(path, DATA / "sidekit-key.h5", named=True)


def test_files_that_end_early_or_lack_labels_are_refused(tmp_path: Path) -> None:
    key, path = DATA / "sidekit-key.h5", tmp_path / "s.h5"
    path.write_bytes((DATA / "sidekit-scores.h5").read_bytes()[:-100])
    for scores, trials in ((path, key), (DATA / "sidekit-scores.h5", path)):
        with refused_file("s.h5: readable"):
            read(scores, trials)
    with refused_file("sidekit-scores.h5: labels_of_matrix"):
        read(DATA / "sidekit-scores.h5", None)
    with refused_file("sidekit-key.h5: no_trial_scores"):
        read(key, None)
    with refused_file("has_named_column", name="speaker", option="--by"):
        read(DATA / "sidekit-scores.h5", key, by=["speaker"])


def test_h5py_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with refused_file("requires", package="h5py", extra="hdf5"):
        read(DATA / "sidekit-scores.h5", DATA / "sidekit-key.h5")
