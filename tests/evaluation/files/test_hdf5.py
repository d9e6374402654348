"""Keys and scores of SIDEKIT, BOSARIS and PyBOSARIS, and HDF5 files that break a rule."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.trials import TrialTable, read_trials
from mpcs_torch.messages import RULES

DATA = Path(__file__).parents[2] / "oracles" / "data" / "hdf5"
SCORES = ["sidekit-scores", "sidekit-matlab-scores", "pybosaris-scores"]
KEYS = ["sidekit-key", "pybosaris-key"]
NAMES = ["bob z", "bob x", "bob y", "ann x", "ann y"]
LIST = "ann x target\nbob y target\nann y nontarget\nbob x nontarget\nbob z nontarget\n"
TEXT = "ann x 2.5\nbob y 1\nann y 0.5\nbob x -0.25\nbob z -1.5\n"


def read(scores: Path, trials: Path | None, **wanted: Any) -> TrialTable:
    options = ReadOptions(labels=trials, by=wanted.pop("by", ()))
    return read_trials(scores, options, lambda rows: None, **wanted)


def refused(message: str, scores: Path, trials: Path | None) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(scores, trials, named=True)


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
    message = "sidekit-scores.h5: must contain target and non-target trials, but contains no non-target trial"
    refused(message, DATA / "sidekit-scores.h5", DATA / "sidekit-ndx.h5")


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
    message = f"s.h5: lacks 2 rows of {key}, such as 'ann x' in row 1"
    refused(message, path, key)
    (tmp_path / "list.txt").write_text(LIST)
    refused(message.replace("k.h5", "list.txt"), path, tmp_path / "list.txt")
    path = write(tmp_path / "s.h5", score_mask=np.array([[1, 0, 1], [1, 1, 1]]))
    refused(f"s.h5: lacks 1 row of {key}, such as 'ann y' in row 2", path, key)
    other = {
        "segset": np.array([b"x", b"z"]),
        "score_mask": np.ones((2, 2), dtype=np.int8),
        "scores": np.ones((2, 2)),
    }
    refused(
        f"s.h5: lacks 2 rows of {key}, such as 'ann y' in row 2",
        write(tmp_path / "s.h5", **other),
        key,
    )


MASK_RULE = f"'trial_mask' {Rule('matrix_of_trials', fields={'shape': (2, 3), 'kind': 'whole numbers'})}, but got "
SCORES_RULE = f"'scores' {Rule('matrix_of_trials', fields={'shape': (2, 3), 'kind': 'scores'})}, but got "
NAMES_RULE = Rule("names")
SEGSET_RULE = str(Rule("dataset", fields={"name": "segset"}))
TRIALS_RULE = RULES["trials"].partition("{")[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"modelset": None}, TRIALS_RULE),
        ({"segset": None}, SEGSET_RULE),
        (
            {"trial_mask": None},
            TRIALS_RULE,
        ),
        (
            {"trial_mask": np.full((2, 3), 2)},
            f"'trial_mask' {Rule('between', fields={'minimum': -1, 'maximum': 1})}",
        ),
        ({"trial_mask": np.full((3, 2), 1)}, f"{MASK_RULE}int64 (3, 2)"),
        ({"trial_mask": np.zeros(6, dtype=np.int8)}, f"{MASK_RULE}int8 (6,)"),
        ({"trial_mask": np.zeros((2, 3))}, f"{MASK_RULE}float64 (2, 3)"),
        ({"scores": np.ones((2, 3), dtype=int)}, f"{SCORES_RULE}int64 (2, 3)"),
        (
            {"scores": np.full((2, 3), np.nan)},
            f"'scores' {Rule('number_in_mask', fields={'mask': 'score_mask'})}",
        ),
        ({"scores": np.ones((2, 2))}, f"{SCORES_RULE}float64 (2, 2)"),
        ({"segset": np.array([b"x", b"y", b"x"])}, f"'segset' {NAMES_RULE}"),
        ({"segset": np.array([b"x", b"", b"z"])}, f"'segset' {NAMES_RULE}"),
        (
            {"segset": np.array([b"x", b"\xff", b"z"])},
            "cannot be read: 'utf-8' codec can't decode byte 0xff",
        ),
        ({"segset": np.arange(3)}, f"'segset' {NAMES_RULE}"),
        ({"segset": h5py.Empty("S1")}, SEGSET_RULE),
        (
            {"scores": h5py.ExternalLink(DATA / "sidekit-scores.h5", "/scores")},
            f"'scores' {Rule('in_file')}",
        ),
        ({"modelset": np.array([(1, 2.0)] * 2)}, f"'modelset' {NAMES_RULE}"),
        ({"scores": np.zeros((2, 3), dtype="f8,f8")}, SCORES_RULE),
    ],
)
def test_files_that_break_a_rule_are_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    names = ["k.h5"] if "trial_mask" in changed else ["s.h5"]
    names = names if "scores" in changed or "trial_mask" in changed else ["k.h5", "s.h5"]
    for name in names:
        (
            write(tmp_path / "s.h5"),
            write(tmp_path / "k.h5"),
            write(tmp_path / name, **changed),
        )
        refused(f"{name}: {message}", tmp_path / "s.h5", tmp_path / "k.h5")


def test_a_trial_is_not_of_both_kinds(tmp_path: Path) -> None:
    masks = {"tar_mask": np.eye(2, 3, dtype=bool), "non_mask": np.ones((2, 3), dtype=bool)}
    path = write(tmp_path / "k.h5", trial_mask=None, **masks)
    refused(
        f"k.h5: a trial {Rule('target_or_not', fields={'targets': 'tar_mask', 'nontargets': 'non_mask'})}",
        DATA / "sidekit-scores.h5",
        path,
    )


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
    ("add", "message"),
    [
        (external, "'scores' must be in the file itself, but is in other files"),
        (virtual, "'scores' must be in the file itself, but is in other files"),
        (incomplete, "'scores' must be stored completely, but values are missing"),
        (empty, "'scores' must be stored completely, but values are missing"),
        (huge, "must unpack to at most 268435456 bytes, but its 2335 bytes unpack to 8796"),
        (
            huge_chunk,
            "must unpack to at most 268435456 bytes, but its 2335 bytes unpack to 2147",
        ),
    ],
)
def test_datasets_that_are_elsewhere_incomplete_or_too_large_are_refused(
    tmp_path: Path, add: Callable[[h5py.File], None], message: str
) -> None:
    path = write(tmp_path / "s.h5", scores=None)
    with h5py.File(path, "a") as file:
        add(file)
    refused(f"s.h5: {message}", path, DATA / "sidekit-key.h5")


def test_files_that_end_early_or_lack_labels_are_refused(tmp_path: Path) -> None:
    key, path = DATA / "sidekit-key.h5", tmp_path / "s.h5"
    path.write_bytes((DATA / "sidekit-scores.h5").read_bytes()[:-100])
    for scores, trials in ((path, key), (DATA / "sidekit-scores.h5", path)):
        with pytest.raises(
            PredictionsError, match=r"s\.h5: cannot be read: .*truncated file"
        ):
            read(scores, trials)
    no_labels = "sidekit-scores.h5: contains no labels: give a Key, or a list of trials, with --labels FILE"
    refused(no_labels, DATA / "sidekit-scores.h5", None)
    refused(
        "sidekit-key.h5: has no column of scores that is known by its name or values",
        key,
        None,
    )
    with pytest.raises(
        PredictionsError,
        match="has no column 'speaker' of --by; it has enrollment, test, score",
    ):
        read(DATA / "sidekit-scores.h5", key, by=["speaker"])


def test_h5py_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        PredictionsError,
        match=re.escape("scores.h5: requires h5py: pip install 'mpcs_torch[hdf5]'"),
    ):
        read(DATA / "sidekit-scores.h5", DATA / "sidekit-key.h5")
