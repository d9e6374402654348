"""Trials written in each format are read again, and what a format cannot hold is an error."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import Trials, TrialTable, read_trials
from mpcs_torch.evaluation.files.write import write_trials
from mpcs_torch.functional.inputs.groups import Groups
from tests.refused import refused_file

ODD = ['a,"b"', "Änn", "two\nlines", "x y"]


def table(**columns: list[str]) -> TrialTable:
    """Four trials with columns of text."""
    scores = torch.tensor([0.1 + 0.2, -torch.inf, 1e-300, torch.inf], dtype=torch.float64)
    groups = {}
    for column, texts in columns.items():
        names = list(dict.fromkeys(texts))
        groups[column] = Groups(names, torch.tensor([names.index(text) for text in texts]))
    return TrialTable(
        Trials(scores, torch.tensor([True, False, True, False])), None, groups
    )


def values(found: TrialTable) -> list[tuple[Any, ...]]:
    """Return the trials in order, each with its texts."""
    texts = [
        [group.names[code] for code in group.codes.tolist()]
        for _, group in sorted(found.groups.items())
    ]
    return sorted(
        zip(*texts, found.trials.scores.tolist(), found.trials.labels.tolist(), strict=True)
    )


def read(path: Path, columns: Sequence[str], trials: Path | None = None) -> TrialTable:
    return read_trials(
        path, ReadOptions(labels=trials, by=list(columns)), lambda rows: None
    )


@pytest.mark.parametrize("name", ["s.csv", "s.parquet", "s.npz"])
@pytest.mark.parametrize(
    "columns",
    [{}, {"trial": ODD}, {"enrollment": ODD, "test": ["x"] * 4, "file": ["1", "2"] * 2}],
)
def test_tables_keep_all_columns(
    tmp_path: Path, name: str, columns: dict[str, list[str]]
) -> None:
    written = table(**columns)
    assert write_trials(tmp_path / name, written) == []
    assert values(read(tmp_path / name, list(columns))) == values(written)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_pairs_are_written_as_scores_and_a_list_of_trials(tmp_path: Path) -> None:
    name, trials = "s.txt", "k.txt"
    pairs = {"enrollment": ["Änn", "b", "Änn", "b"], "test": ["x", "x", "y", "z"]}
    assert write_trials(
        tmp_path / name, table(**pairs, file=["1"] * 4), tmp_path / trials
    ) == ["file"]
    assert values(
        read(tmp_path / name, ["column 1", "column 2"], tmp_path / trials)
    ) == values(table(**pairs))


@pytest.mark.parametrize(
    ("name", "trials", "columns", "refusal"),
    [
        ("s.csv", None, {"labels": ODD}, "s.csv: no_reserved_name"),
        ("s.npz", None, {"test": ["\0", "b"] * 2}, "no_zero_character, column test"),
        ("s.csv", "k.txt", {}, "s.csv: no_list_of_trials"),
        ("s.txt", None, {}, "s.txt: list_of_trials"),
        ("s.txt", "s.txt", {}, "s.txt: list_of_trials"),
        ("s.txt", "k.csv", {}, "k.csv: written_format"),
        ("s.h5", "k.h5", {}, "s.h5: written_format"),
        ("s.txt", "k.txt", {"test": ODD}, "needs_columns"),
        (
            "s.txt",
            "k.txt",
            {"enrollment": ["a"] * 4, "test": ODD},
            "no_white_space, column test",
        ),
        (
            "s.txt",
            "k.txt",
            {"enrollment": ["a"] * 4, "test": ["x"] * 4},
            "different_ids, row 2",
        ),
    ],
)
def test_what_a_format_cannot_hold_is_an_error(
    tmp_path: Path,
    name: str,
    trials: str | None,
    columns: dict[str, list[str]],
    refusal: str,
) -> None:
    with refused_file(refusal):
        write_trials(
            tmp_path / name, table(**columns), None if trials is None else tmp_path / trials
        )
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_replaced_if_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s.txt", "k.txt"):
        (tmp_path / name).write_text("mine")

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    pairs = table(enrollment=["a", "b", "a", "b"], test=["x", "x", "y", "y"])
    monkeypatch.setattr("mpcs_torch.evaluation.files.write.write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        write_trials(tmp_path / "s.txt", pairs, tmp_path / "k.txt")
    assert sorted((path.name, path.read_text()) for path in tmp_path.iterdir()) == [
        ("k.txt", "mine"),
        ("s.txt", "mine"),
    ]
