"""Keys and scores of SIDEKIT, BOSARIS and PyBOSARIS, and HDF5 files that break a rule."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import TrialTable, read_trials
from tests.refused import refused_file

DATA = Path(__file__).parents[2] / "oracles" / "data" / "hdf5"
SCORES = ["sidekit-scores", "sidekit-matlab-scores", "pybosaris-scores"]
KEYS = ["sidekit-key", "pybosaris-key"]
NAMES = ["bob z", "bob x", "bob y", "ann x", "ann y"]
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


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("scores", SCORES)
def test_files_of_each_toolkit_are_read(scores: str, key: str) -> None:
    found = read(DATA / f"{scores}.h5", DATA / f"{key}.h5", named=True, by=["test"])
    assert found.names is not None
    assert found.names.to_pylist() == NAMES
    assert found.trials.scores.tolist() == [-1.5, -0.25, 1.0, 2.5, 0.5]
    assert found.trials.labels.tolist() == [False, False, True, True, False]
    assert found.groups["test"].names == ["z", "x", "y"]


def test_an_ndx_is_read_as_trials_without_labels() -> None:
    for name in ("sidekit-ndx", "pybosaris-ndx"):
        columns = (
            open_table(DATA / f"{name}.h5").read(["enrollment", "test", "label"]).columns
        )
        assert columns["enrollment"].to_pylist() == ["ann", "ann", "bob", "bob", "bob"]
        assert columns["test"].to_pylist() == ["x", "y", "x", "y", "z"]
        assert columns["label"].to_pylist() == ["target"] * 5
    with refused_file("both_kinds_of_trials", missing="non-target"):
        read(DATA / "sidekit-scores.h5", DATA / "sidekit-ndx.h5", named=True)


def test_text_and_hdf5_go_together(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(LIST)
    (tmp_path / "scores.txt").write_text(TEXT)
    expected = read(DATA / "sidekit-scores.h5", DATA / "sidekit-key.h5", named=True)
    for scores, trials in (
        (DATA / "sidekit-scores.h5", tmp_path / "list.txt"),
        (tmp_path / "scores.txt", DATA / "pybosaris-key.h5"),
    ):
        found = read(scores, trials, named=True)
        values = [
            dict(zip(t.names.to_pylist(), t.trials.scores.tolist(), strict=True))
            for t in (found, expected)
        ]  # type: ignore[union-attr]
        assert values[0] == values[1]
        labels = [
            dict(zip(t.names.to_pylist(), t.trials.labels.tolist(), strict=True))
            for t in (found, expected)
        ]  # type: ignore[union-attr]
        assert labels[0] == labels[1]


def test_scores_of_other_pairs_are_ignored_and_counted(tmp_path: Path) -> None:
    found = read(write(tmp_path / "s.h5"), write(tmp_path / "k.h5"))
    assert found.trials.scores.tolist() == [0, 1, 3, 4, 5]
    assert "1 rows without a label or a score left out" in found.read


def test_trials_without_a_score_are_named(tmp_path: Path) -> None:
    key = write(tmp_path / "k.h5")
    few = {
        "modelset": np.array([b"bob"]),
        "score_mask": np.ones((1, 3), dtype=np.int8),
        "scores": np.ones((1, 3)),
    }
    path = write(tmp_path / "s.h5", **few)
    (tmp_path / "list.txt").write_text(LIST)
    for trials in (key, tmp_path / "list.txt"):
        with refused_file("s.h5: rows_of_file", other=trials, id="ann x"):
            read(path, trials, named=True)
    path = write(tmp_path / "s.h5", score_mask=np.array([[1, 0, 1], [1, 1, 1]]))
    with refused_file("s.h5: rows_of_file", id="ann y"):
        read(path, key, named=True)
    other = {
        "segset": np.array([b"x", b"z"]),
        "score_mask": np.ones((2, 2), dtype=np.int8),
        "scores": np.ones((2, 2)),
    }
    with refused_file("s.h5: rows_of_file", id="ann y"):
        read(write(tmp_path / "s.h5", **other), key, named=True)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"modelset": None}, "trials"),
        ({"segset": None}, "dataset"),
        ({"trial_mask": None}, "trials"),
        (
            {"trial_mask": np.full((2, 3), 2)},
            "between",
        ),
        ({"trial_mask": np.full((3, 2), 1)}, "matrix_of_trials"),
        ({"trial_mask": np.zeros(6, dtype=np.int8)}, "matrix_of_trials"),
        ({"trial_mask": np.zeros((2, 3))}, "matrix_of_trials"),
        ({"scores": np.ones((2, 3), dtype=int)}, "matrix_of_trials"),
        (
            {"scores": np.full((2, 3), np.nan)},
            "number_in_mask",
        ),
        ({"scores": np.ones((2, 2))}, "matrix_of_trials"),
        ({"segset": np.array([b"x", b"y", b"x"])}, "names"),
        ({"segset": np.array([b"x", b"", b"z"])}, "names"),
        (
            {"segset": np.array([b"x", b"\xff", b"z"])},
            "utf_8",
        ),
        ({"segset": np.arange(3)}, "names"),
        ({"segset": h5py.Empty("S1")}, "dataset"),
        (
            {"scores": h5py.ExternalLink(DATA / "sidekit-scores.h5", "/scores")},
            "in_file",
        ),
        (
            {"modelset": np.array([(1, 2.0)] * 2)},
            "names",
        ),
        ({"scores": np.zeros((2, 3), dtype="f8,f8")}, "matrix_of_trials"),
    ],
)
def test_files_that_break_a_rule_are_refused(
    tmp_path: Path, changed: dict[str, Any], refusal: str
) -> None:
    names = ["k.h5"] if "trial_mask" in changed else ["s.h5"]
    names = names if "scores" in changed or "trial_mask" in changed else ["k.h5", "s.h5"]
    for name in names:
        (
            write(tmp_path / "s.h5"),
            write(tmp_path / "k.h5"),
            write(tmp_path / name, **changed),
        )
        with refused_file(f"{name}: {refusal}"):
            read(tmp_path / "s.h5", tmp_path / "k.h5", named=True)


def test_a_trial_is_not_of_both_kinds(tmp_path: Path) -> None:
    masks = {"tar_mask": np.eye(2, 3, dtype=bool), "non_mask": np.ones((2, 3), dtype=bool)}
    path = write(tmp_path / "k.h5", trial_mask=None, **masks)
    with refused_file("k.h5: target_or_not", argument="a trial"):
        read(DATA / "sidekit-scores.h5", path, named=True)


def test_names_may_be_text_of_any_length(tmp_path: Path) -> None:
    names = {"modelset": ["Änn", "bob"]}
    found = read(
        write(tmp_path / "s.h5", **names), write(tmp_path / "k.h5", **names), named=True
    )
    assert found.names is not None
    assert found.names.to_pylist()[0] == "Änn x"


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
