"""Trials with their names and groups: from csv, parquet and Kaldi's lists alike."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv, parquet

from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.trial_readers import columns_of, read_trial_table
from mpcs_torch.evaluation.files.trials import TrialTable

ROWS = [("a", "x", 1.5, "target"), ("b", "x", -0.5, "nontarget"), ("a", "y", 0.5, "nontarget"), ("b", "y", 2.0, "1")]


def files(folder: Path) -> dict[str, tuple[Path, Path | None]]:
    """Write the same trials in each format."""
    lines = [",".join(map(str, row)) for row in [("enrollment", "test", "score", "label"), *ROWS]]
    (folder / "s.csv").write_text("\n".join(lines))
    parquet.write_table(csv.read_csv(folder / "s.csv"), folder / "s.parquet")
    write_npz(folder / "s.npz")
    (folder / "s.txt").write_text("".join(f"{one} {other} {score}\n" for one, other, score, _ in ROWS))
    (folder / "trials.txt").write_text("".join(f"{one} {other} {label}\n" for one, other, _, label in reversed(ROWS)))
    return {
        "csv": (folder / "s.csv", None),
        "parquet": (folder / "s.parquet", None),
        "npz": (folder / "s.npz", None),
        "Kaldi": (folder / "s.txt", folder / "trials.txt"),
    }


def write_npz(path: Path, **changed: Any) -> Path:
    enrollment, test, scores, labels = map(np.array, zip(*ROWS, strict=True))
    is_target = np.isin(labels, ["target", "1"])
    np.savez(path, **{"enrollment": enrollment, "test": test, "scores": scores, "labels": is_target, **changed})
    return path


def read(path: Path, trials: Path | None = None, **wanted: object) -> TrialTable:
    return read_trial_table(path, trials, lambda rows: None, **wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["csv", "parquet", "npz", "Kaldi"])
def test_names_and_groups_are_read_from_each_format(tmp_path: Path, name: str) -> None:
    found = read(*files(tmp_path)[name], named=True, columns=["test", "enrollment"])
    assert found.trials.scores.tolist() == [1.5, -0.5, 0.5, 2.0]
    assert found.trials.labels.tolist() == [True, False, False, True]
    assert found.names is not None
    assert found.names.to_pylist() == ["a x", "b x", "a y", "b y"]
    assert found.groups["test"].names == ["x", "y"]
    assert found.groups["test"].codes.tolist() == [0, 0, 1, 1]
    assert found.groups["enrollment"].codes.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(("score", "label"), [("y_score", "y_true"), ("score", "y_true"), ("llr", "Target")])
def test_scores_and_labels_may_have_their_usual_names(tmp_path: Path, score: str, label: str) -> None:
    (tmp_path / "s.csv").write_text(f"id,{score},{label}\n7,0.5,1.0\n8,0.25,0\n")
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    np.savez(tmp_path / "s.npz", **{"id": [7, 8], score: [0.5, 0.25], label: [1, 0]})  # type: ignore[arg-type]
    for name in ("s.csv", "s.parquet", "s.npz"):
        found = read(tmp_path / name, columns=["id"])
        assert (found.trials.scores.tolist(), found.trials.labels.tolist()) == ([0.5, 0.25], [True, False])
        assert columns_of(tmp_path / name, None) == ["id"]


def test_our_names_go_before_usual_ones_and_several_of_these_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("score,y_score,label,y_true\n1,9,1,0\n0,8,0,1\n")
    assert read(path, columns=["y_true"]).trials.labels.tolist() == [True, False]
    path.write_text("score,target,y_true\n1,1,0\n0,0,1\n")
    with pytest.raises(
        PredictionsError, match=r"several columns that may be its label, \['target', 'y_true'\]: rename"
    ):
        read(path)
    assert read(path, columns=["target"]).trials.labels.tolist() == [False, True]
    path.write_text("a,b\n1,0\n")
    with pytest.raises(PredictionsError, match=r"score may be called scores, y_score.*, and label labels, .* or y$"):
        read(path)


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    found = read(*files(tmp_path)["parquet"])
    assert found.names is None
    assert found.groups == {}


def test_a_trial_is_named_by_the_columns_that_are_given_or_usual(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("score,label,trial,file\n1,1,t1,7\n0,0,t2,8\n")
    for key, names in (([], ["t1", "t2"]), (["file"], ["7", "8"]), (["file", "trial"], ["7 t1", "8 t2"])):
        found = read(path, named=True, key=key)
        assert found.names is not None
        assert found.names.to_pylist() == names
    path.write_text("score,label\n1,1\n0,0\n")
    assert read(path, named=True).names is None


def test_numbers_are_groups_too(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("score,label,year\n1,1,2019\n0,0,2020\n2,1,2019\n")
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    np.savez(tmp_path / "s.npz", scores=[1.0, 0.0, 2.0], labels=[1, 0, 1], year=[2019, 2020, 2019])
    for name in ("s.csv", "s.parquet", "s.npz"):
        assert read(tmp_path / name, columns=["year"]).groups["year"].names == ["2019", "2020"]


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        (
            "score,label\n1,1\n0,0\n",
            {"columns": ["speaker"]},
            "s.csv: must have the columns ['score', 'label', 'speaker']",
        ),
        ("score,label,trial\n1,1,a\n0,0,\n", {"named": True}, "s.csv, row 2, column trial: is missing"),
        (
            "score,label,trial\n1,1,a\n0,0,a\n",
            {"named": True},
            "s.csv: must name each trial once, but 'a' appears more than once",
        ),
    ],
)
def test_errors_name_the_column(tmp_path: Path, text: str, wanted: dict[str, object], message: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(tmp_path / "s.csv", **wanted)


def test_text_without_names_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("1 1\n0 0\n")
    with pytest.raises(PredictionsError, match="is text without columns, so it has no 'speaker'"):
        read(tmp_path / "s.txt", columns=["speaker"])
    assert read(tmp_path / "s.txt", named=True).names is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": np.array([1, 0, 2, 0])}, "s.npz, row 3, column labels: must be one of 1, target, true, 0"),
        ({"labels": np.array(["1", "0"] * 2)}, "s.npz, column labels: must be integers or bools, but is <U1"),
        ({"scores": np.array([0, 1, np.nan, 0])}, "s.npz, row 3, column scores: must be a number, but is 'nan'"),
        ({"scores": np.array(["1", "0"] * 2)}, "s.npz, column scores: must be numbers, but is <U1"),
        ({"scores": np.ones((4, 1))}, "scores must have the shape (N,), but has (4, 1)"),
        ({"test": np.array(["x"])}, "test must have the shape (4,), but have (1,)"),
        ({"test": np.array(["x", "", "x", "y"])}, "s.npz, row 2, column test: is missing"),
        ({"test": np.array(["x"] * 4, dtype=object)}, "must contain numbers of at most 8 bytes or text of at most"),
        ({"test": np.ones(4)}, "s.npz, column test: must be text or integers, but is float64"),
        ({"test": np.array(["x" * 10_001] * 4)}, "text of at most 10000 characters, but contains <U10001"),
    ],
)
def test_arrays_that_break_a_rule_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(write_npz(tmp_path / "s.npz", **changed), named=True)


def test_files_that_are_no_npz_or_end_early_are_refused(tmp_path: Path) -> None:
    data = write_npz(tmp_path / "s.npz").read_bytes()
    for content in (data[:-100], data[:40], b"", b"score,label\n1,1\n"):
        (tmp_path / "s.npz").write_bytes(content)
        with pytest.raises(PredictionsError, match=r"s\.npz: cannot be read: File is not a zip file"):
            read(tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz", preds=[[0.5, 0.5]], target=[0])
    message = "must have the arrays ['scores', 'labels'], but has ['preds', 'target']"
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(tmp_path / "s.npz")
    with pytest.raises(PredictionsError, match="contains its own labels: --trials is only for HDF5, and for text"):
        read(tmp_path / "s.npz", tmp_path / "s.npz")
