"""Copies of files keep what was read, and what a format cannot hold is an error."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

from mpcs_torch.evaluation.files.formats import open_table, open_text
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import FileTable
from mpcs_torch.evaluation.files.write import copy_table, write_text
from tests.refused import refused_file


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "s.csv",
            'b,score,a\n"1,5",0.50,\n x ,2,"""q"""\n',
            'b,score,a,new\n"1,5",1.0,,7\n x ,4.0,"""q""",7\n',
        ),
        ("s.tsv", "score\tid\n1\t01\n", "score\tid\tnew\n2.0\t01\t7\n"),
        ("s.txt", "a  b 1\nc d 2.5\n", "a\tb\t2.0\t7\nc\td\t5.0\t7\n"),
        ("s.csv", "id;score\n0,5;1,5\n1,0;2\n", "id;score;new\n0,5;3,0;7\n1,0;4,0;7\n"),
        (
            "s.txt",
            "id  score\n0,5  1,5\n1,0  2\n",
            "id\tscore\tnew\n0,5\t3,0\t7\n1,0\t4,0\t7\n",
        ),
        ("s.csv", 'id,score\na,"0,5"\nb,"0,25"\n', "id;score;new\na;1,0;7\nb;0,5;7\n"),
        (
            "s.csv",
            'note,score\n"a\rb",1\n"# 1",2\n',
            '"note","score","new"\n"a\rb","2.0","7"\n"# 1","4.0","7"\n',
        ),
    ],
)
def test_a_copy_keeps_texts_names_order_and_dialect(
    tmp_path: Path, name: str, content: str, expected: str
) -> None:
    (tmp_path / name).write_text(content)
    table = open_table(tmp_path / name)
    score = "score" if table.has_names else "column 3"

    def change(batch: Any) -> dict[str, Any]:
        doubled = (2 * batch.numbers(score)).tolist()
        return {score: doubled, "new": [7] * batch.rows}

    copy_table(table, tmp_path / f"out-{name}", change)
    assert (tmp_path / f"out-{name}").read_bytes().decode() == expected


def copied(table: FileTable, out: Path) -> Path:
    copy_table(table, out, lambda read: {"new": [0.5] * read.rows})
    return out


def test_texts_of_a_parquet_file_are_written_as_they_are_read(tmp_path: Path) -> None:
    columns = {
        "patient": [1.0, None, 3.0],
        "score": [1.5, 0.1 + 0.2, 1.0],
        "ill": [True, False, True],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    out = copied(open_table(tmp_path / "in.parquet"), tmp_path / "out.csv")
    rows = ["1,1.5,true,0.5", ",0.30000000000000004,false,0.5", "3,1.0,true,0.5"]
    assert out.read_text().splitlines()[1:] == rows


def test_numbers_with_decimal_commas_become_numbers_of_a_parquet_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "in.csv").write_text("id;score;note\n007;0,5;1,5 mm\n008;NA;\n")
    written = pyarrow.parquet.read_table(
        copied(open_table(tmp_path / "in.csv"), tmp_path / "out.parquet")
    )
    assert written.to_pydict() == {
        "id": ["007", "008"],
        "score": [0.5, None],
        "note": ["1,5 mm", ""],
        "new": [0.5] * 2,
    }


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_arrays_are_written_with_the_names_of_their_classes(
    tmp_path: Path, suffix: str
) -> None:
    np.savez(tmp_path / "in.npz", preds=np.full((3, 2), 0.5), classes=["cat", "night owl"])
    out = tmp_path / f"out{suffix}"
    copy_table(
        open_table(tmp_path / "in.npz"),
        out,
        lambda _: {"note": ["a", None, "é"], "new": [None, 1.0, 2.0]},
    )
    table = open_table(out)
    assert (table.names, table.classes) == (["preds", "note", "new"], ["cat", "night owl"])
    read = table.read(["note", "new"])
    assert read.columns["note"].to_pylist() == ["a", "", "é"]
    assert np.isnan(read.numbers("new")).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("roles", "names"),
    [
        (Roles("columns", ["1", "2"], ["cat", "dog"], label="3"), ["cat", "dog", "label"]),
        (
            Roles("columns", ["1", "2"], ["cat", "dog"], called=["0", "1"], label="3"),
            ["0", "1", "label"],
        ),
        (Roles("columns", ["1", "2"], ["cat", "dog"]), ["cat", "dog"]),
        (Roles("lists", ["1"], ["cat", "dog"], label="2"), ["scores", "label"]),
        (Roles("positive", ["1"], ["cat", "dog"]), ["score"]),
        (Roles("decisions", ["1"], ["cat", "dog"], label="2"), ["score", "label"]),
    ],
)
def test_a_copy_with_a_header_calls_columns_by_names_that_are_recognized(
    roles: Roles, names: list[str]
) -> None:
    places = map(str, range(1, 1 + len(names)))
    assert roles.usual_names() == dict(zip(places, names, strict=True))


def test_a_cell_that_would_be_read_otherwise_is_an_error_at_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misread(path: Path, content: bytes) -> FileTable:
        return open_text(path, content.replace(b"x3", b"3"))

    monkeypatch.setattr("mpcs_torch.evaluation.files.write.open_text", misread)
    columns = {"id": ["a", "x3", "x4"], "score": [0.5, 1.5, 2.5]}
    refusal = "out.csv: value_to_read_again, row 2, column id"
    with refused_file(refusal, cell="x3", read="3"):
        write_text(io.BytesIO(), columns, path=tmp_path / "out.csv")
    write_text(io.BytesIO(), {"score": [0.5]}, path=tmp_path / "out.csv")


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_arrays_that_hold_no_column_are_named(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"p{suffix}"
    columns = {"preds": [[0.9, 0.1], [0.2, 0.8]], "target": [0, 1]}
    cubes = {"cubes": np.zeros((2, 2, 2)), "long": np.zeros(3)}
    if suffix == ".npz":
        objects = np.array([{}, None], dtype=object)
        np.savez(path, **columns, **cubes, objects=objects)  # type: ignore[arg-type]
        others = "objects, cubes, long"
    else:
        tensors = {name: torch.tensor(array) for name, array in (columns | cubes).items()}
        torch.save(tensors, path)
        others = "cubes, long"
    table = open_table(path)
    assert table.names == ["preds", "target"]
    assert others in table.dialect


@pytest.mark.parametrize(
    ("columns", "refusal"),
    [
        (
            {"id": ["a", "b\0"], "score": [0.5, 1.5]},
            "text_to_read_again",
        ),
        (
            {" id ": ["a", "b"], "score": [0.5, 1.5]},
            "columns_to_read_again",
        ),
        (
            {"1": [0.5, 1.5], "2.5": [0.5, 1.5]},
            "columns_to_read_again",
        ),
        (
            {"id": ["a", "b" * csv.field_size_limit() * 2], "score": [0.5, 1.5]},
            "text_to_read_again",
        ),
    ],
)
def test_what_text_cannot_hold_is_an_error_that_names_another_format(
    tmp_path: Path, columns: dict[str, list[Any]], refusal: str
) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    table = open_table(tmp_path / "in.parquet")
    with refused_file(refusal):
        copied(table, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    read = open_table(copied(table, tmp_path / "out.parquet")).read(table.names)
    assert {name: values.to_pylist() for name, values in read.columns.items()} == columns


def test_a_single_column_keeps_empty_cells_and_line_ends(tmp_path: Path) -> None:
    path, cells = tmp_path / "out.csv", ["a", "\r", "", "\r\n", "# 1"]
    with path.open("wb") as file:
        write_text(file, {"note": cells}, path=path)
    assert open_table(path).read(["note"]).columns["note"].to_pylist() == cells


def test_columns_without_names_get_usual_names_in_a_format_that_has_names(
    tmp_path: Path,
) -> None:
    (tmp_path / "in.csv").write_text("0.5,cat\n0.25,dog\n0.75,cat\n")
    table, out = open_table(tmp_path / "in.csv"), tmp_path / "out.parquet"
    copy_table(table, out, lambda _: {}, names={"column 2": "label"})
    assert open_table(out).names == ["column 1", "label"]
    with refused_file("different_columns", names=["label"]):
        copy_table(
            table, out, lambda _: {}, names={"column 1": "label", "column 2": "label"}
        )
