"""Trials written in each format are read again, and what a format cannot hold is an error."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from mpcs_torch.evaluation.files import hdf5 as key
from mpcs_torch.evaluation.files import trial_hdf5
from mpcs_torch.evaluation.files import trial_writers as write_table
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.hdf5 import Key, read_key
from mpcs_torch.evaluation.files.trial_hdf5 import write_key, write_ndx
from mpcs_torch.evaluation.files.trial_readers import columns_of, read_trial_table
from mpcs_torch.evaluation.files.trial_writers import write_trials
from mpcs_torch.evaluation.files.trials import Trials, TrialTable
from mpcs_torch.functional.inputs.groups import Groups

ODD = ['a,"b"', "Änn", "two\nlines", " x "]


def table(**columns: list[str]) -> TrialTable:
    """Four trials with columns of text."""
    scores = torch.tensor([0.1 + 0.2, -torch.inf, 1e-300, torch.inf], dtype=torch.float64)
    groups = {}
    for column, texts in columns.items():
        names = list(dict.fromkeys(texts))
        groups[column] = Groups(names, torch.tensor([names.index(text) for text in texts]))
    return TrialTable(Trials(scores, torch.tensor([True, False, True, False])), None, groups)


def values(found: TrialTable) -> list[tuple[Any, ...]]:
    """Return the trials in order, each with its texts."""
    texts = [[group.names[code] for code in group.codes.tolist()] for _, group in sorted(found.groups.items())]
    return sorted(zip(*texts, found.trials.scores.tolist(), found.trials.labels.tolist(), strict=True))


def read(path: Path, trials: Path | None = None) -> TrialTable:
    return read_trial_table(path, trials, lambda rows: None, columns=columns_of(path, trials), both_kinds=False)


@pytest.fixture(params=[1, 2**16])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_table, "ROWS", request.param)
    monkeypatch.setattr(trial_hdf5, "CELLS", request.param)
    monkeypatch.setattr(key, "CELLS", request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("name", ["s.csv", "s.parquet", "s.npz"])
@pytest.mark.parametrize(
    "columns", [{}, {"trial": ODD}, {"enrollment": ODD, "test": ["x"] * 4, "file": ["1", "2"] * 2}]
)
def test_tables_keep_all_columns(tmp_path: Path, name: str, columns: dict[str, list[str]]) -> None:
    written = table(**columns)
    assert write_trials(tmp_path / name, written) == []
    assert columns_of(tmp_path / name, None) == list(columns)
    assert values(read(tmp_path / name)) == values(written)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(("name", "trials"), list(product(["s.h5", "s.txt"], ["k.hdf5", "k.txt"])))
def test_pairs_are_written_as_scores_and_a_list_of_trials(tmp_path: Path, name: str, trials: str) -> None:
    pairs = {"enrollment": ["Änn", "b", "Änn", "b"], "test": ["x", "x", "y", "z"]}
    assert write_trials(tmp_path / name, table(**pairs, file=["1"] * 4), tmp_path / trials) == ["file"]
    assert values(read(tmp_path / name, tmp_path / trials)) == values(table(**pairs))


def test_a_key_and_an_ndx_come_back(tmp_path: Path) -> None:
    written = Key(["a", "b"], ["x", "y", "é"], np.array([[1, -1, 0], [0, 0, -1]], dtype=np.int8))
    write_key(tmp_path / "k.h5", written)
    write_ndx(tmp_path / "n.h5", written)
    for found, labels in (
        (read_key(tmp_path / "k.h5"), written.labels),
        (read_key(tmp_path / "n.h5"), abs(written.labels)),
    ):
        assert found[:2] == written[:2]
        assert found.labels.tolist() == labels.tolist()
    write_key(tmp_path / "k.h5", Key([], [], np.zeros((0, 0), dtype=np.int8)))
    assert read_key(tmp_path / "k.h5").enrollments == []


def test_each_toolkit_finds_its_names(tmp_path: Path) -> None:
    pairs = {"enrollment": ["a", "b", "a", "b"], "test": ["x", "x", "y", "z"]}
    write_trials(tmp_path / "s.h5", table(**pairs), tmp_path / "k.h5")
    with h5py.File(tmp_path / "s.h5") as scores, h5py.File(tmp_path / "k.h5") as labels:
        for file, kind in ((scores, "Scores"), (labels, "Key")):
            assert file.attrs["type"] == kind
            for rows, columns in (
                ("modelset", "segset"),
                ("model_names", "test_names"),
                ("ID/row_ids", "ID/column_ids"),
            ):
                assert (file[rows][:].tolist(), file[columns][:].tolist()) == ([b"a", b"b"], [b"x", b"y", b"z"])
        assert labels["trial_mask"][:].tolist() == [[1, 1, 0], [-1, 0, -1]]
        assert (labels["tar_mask"][:] ^ labels["non_mask"][:]).tolist() == labels["trial_mask"][:].astype(bool).tolist()
        assert scores["score_mask"][:].tolist() == [[1, 1, 0], [1, 0, 1]]
        assert scores["scores"][0].tolist() == [0.1 + 0.2, 1e-300, 0.0]
        assert np.isnan(scores["score_mat"][:]).tolist() == [[False, False, True], [False, True, False]]


@pytest.mark.parametrize(
    ("name", "trials", "columns", "message"),
    [
        ("s.csv", None, {"labels": ODD}, "s.csv: a column must not be called 'labels', as scores or labels are"),
        ("s.npz", None, {"test": ["\0", "b"] * 2}, r"column test: must have at most 10000 characters and no zero"),
        ("s.csv", None, {"test": ["x" * 10_001] * 4}, "column test: must have at most 10000 characters and no zero"),
        ("s.csv", "k.h5", {}, "s.csv: holds the labels itself: a list of trials is only for HDF5 and text"),
        ("s.h5", None, {}, "s.h5: holds no labels: give a file for the list of trials, --out-trials FILE"),
        ("s.h5", "s.h5", {}, "s.h5: holds no labels: give a file for the list of trials, --out-trials FILE, that is"),
        ("s.h5", "k.csv", {}, "k.csv: a list of trials must be HDF5 or text"),
        ("s.h5", "k.h5", {"test": ODD}, "s.h5: needs the columns ['enrollment', 'test'], but the trials have ['test']"),
        (
            "s.txt",
            "k.h5",
            {"enrollment": ["a"] * 4, "test": ODD},
            "column test: must have no white space in text, but is ",
        ),
        (
            "s.h5",
            "k.txt",
            {"enrollment": ["a"] * 4, "test": ODD},
            "k.txt, column test: must have no white space in text",
        ),
        ("s.h5", "k.h5", {"enrollment": ["a"] * 4, "test": ["x"] * 4}, "must name each trial once, but 'a x' appears"),
    ],
)
def test_what_a_format_cannot_hold_is_an_error(
    tmp_path: Path, name: str, trials: str | None, columns: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        write_trials(tmp_path / name, table(**columns), None if trials is None else tmp_path / trials)
    assert list(tmp_path.iterdir()) == []


def test_matrices_of_few_trials_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_hdf5, "FREE_BYTES", 100)
    monkeypatch.setattr(trial_hdf5, "MOST_CELLS_OF_A_TRIAL", 2)
    pairs = table(enrollment=["a", "b", "c", "d"], test=["x", "y", "z", "w"])
    message = "a matrix of 4 x 4 must have at least one trial in 2 cells, but has 4: write csv, parquet or npz"
    for name, trials in (("s.h5", "k.txt"), ("s.txt", "k.h5")):
        with pytest.raises(PredictionsError, match=re.escape(message)):
            write_trials(tmp_path / name, pairs, tmp_path / trials)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_replaced_if_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("s.h5", "k.txt"):
        (tmp_path / name).write_text("mine")

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("mpcs_torch.evaluation.files.trial_writers.fill_scores", fail)
    pairs = table(enrollment=["a", "b", "a", "b"], test=["x", "x", "y", "y"])
    with pytest.raises(OSError, match="disk full"):
        write_trials(tmp_path / "s.h5", pairs, tmp_path / "k.txt")
    assert sorted((path.name, path.read_text()) for path in tmp_path.iterdir()) == [("k.txt", "mine"), ("s.h5", "mine")]
