"""Every format of a table of predictions is read as its plain csv file is."""

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from tests.refused import refused_file

PROBS = [
    [0.75, 0.125, 0.125],
    [0.0625, 0.875, 0.0625],
    [0.25, 0.25, 0.5],
    [0.0, 0.125, 0.875],
]
LABELS, NAMES = ["cat", "dog", "owl", "owl"], ["cat", "dog", "owl"]
NUMBERS = [NAMES.index(label) for label in LABELS]
COLUMNS: dict[str, list[Any]] = {
    "id": ["a1", "a2", "b 3", "é4"],
    "label": LABELS,
    **dict(zip(NAMES, zip(*PROBS, strict=True), strict=True)),
}
RECORDS = [
    dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)
]
PIPELINE = [
    [
        {"label": name, "score": score}
        for name, score in sorted(zip(NAMES, row, strict=True), key=lambda pair: -pair[1])
    ]
    for row in PROBS
]
"""As pipelines of Hugging Face write scores: the best class first."""
LABELLED: list[Any] = [
    {"text": "t", "label": label, "scores": scores}
    for label, scores in zip(LABELS, PIPELINE, strict=True)
]
TABLE = pyarrow.table({name: list(values) for name, values in COLUMNS.items()})
CODED = TABLE.set_column(1, "label", TABLE["label"].dictionary_encode())
LISTS = pyarrow.table({"label": NUMBERS, "probs": PROBS})
ARRAYS = {"preds": np.array(PROBS), "target": np.array(NUMBERS)}


def text(delimiter: str = ",", end: str = "\n") -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
    writer.writerows([list(COLUMNS), *(record.values() for record in RECORDS)])
    return file.getvalue()


def written(write: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def lines(values: list[Any]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


PLAIN = text()
SHEET = [list(COLUMNS), *(list(record.values()) for record in RECORDS)]
NAMED: dict[str, str | bytes] = {
    "p.csv": PLAIN,
    "semicolons.csv": text(";"),
    "decimal commas.csv": text(";").replace(".", ","),
    "tabs.tsv": text("\t"),
    "bars.txt": text("|"),
    "spaces.txt": text(" ").replace('"b 3"', "b3").replace(" ", "   "),
    "crlf.csv": text(end="\r\n"),
    "no last end.csv": PLAIN.rstrip(),
    "comments.csv": "# made by hand\n# twice\n" + PLAIN,
    "header with a comment.csv": "# " + PLAIN,
    "empty lines.csv": PLAIN.replace("\n", "\n\n"),
    "bom.csv": PLAIN.encode("utf-8-sig"),
    "utf-16.csv": PLAIN.encode("utf-16"),
    "utf-16 LE.csv": PLAIN.encode("utf-16-le"),
    "utf-16 BE.csv": PLAIN.encode("utf-16-be"),
    "utf-16 tabs.txt": text("\t").encode("utf-16"),
    "p.csv.gz": gzip.compress(PLAIN.encode()),
    "p.csv.bz2": bz2.compress(PLAIN.encode()),
    "p.csv.zst": pyarrow.Codec("zstd").compress(PLAIN.encode(), asbytes=True),
    "p.jsonl": lines(RECORDS),
    "p.jsonl.gz": gzip.compress(lines(RECORDS).encode()),
    "array.json": json.dumps(RECORDS),
    "indented.json": json.dumps(RECORDS, indent=2),
    "columns.json": json.dumps(COLUMNS),
    "by id.json": json.dumps({record["id"]: {**record, "id": None} for record in RECORDS}),
    "nested.jsonl": lines(
        [{"label": r["label"], "probs": {name: r[name] for name in NAMES}} for r in RECORDS]
    ),
    "pipeline.jsonl": lines(LABELLED),
    "pipeline.json": json.dumps(LABELLED),
    "p.parquet": written(lambda file: parquet.write_table(TABLE, file, row_group_size=3)),
    "coded.parquet": written(lambda file: parquet.write_table(CODED, file)),
    "no suffix": PLAIN,
}
TENSORS = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
NUMBERED: dict[str, str | bytes] = {
    "lists.parquet": written(lambda file: parquet.write_table(LISTS, file)),
    "lists.jsonl": lines(LISTS.to_pylist()),
    "lists.csv": "label,probs\n"
    + "".join(f'{n},"{row}"\n' for n, row in zip(NUMBERS, PROBS, strict=True)),
    "p.npz": written(lambda file: np.savez(file, **ARRAYS)),
    "packed.npz": written(lambda file: np.savez_compressed(file, **ARRAYS)),
    "p.pt": written(lambda file: torch.save(TENSORS, file)),
    "numbered.csv": "label,p_0,p_1,p_2\n"
    + "".join(
        f"{n},{','.join(map(str, row))}\n" for n, row in zip(NUMBERS, PROBS, strict=True)
    ),
}


def as_xlsx(path: Path, rows: list[list[Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="xlsx needs openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def read(path: Path, **options: Any) -> tuple[list[str], list[list[float]], list[int]]:
    opened = Predictions(path, ReadOptions(**options))
    assert opened.how().startswith(path.name)
    rows = opened.rows()
    return opened.class_names, rows.scores.tolist(), rows.target.tolist()


@pytest.mark.parametrize("name", [*NAMED, *NUMBERED, "p.xlsx"])
def test_every_format_is_read_as_the_plain_table_is(name: str, tmp_path: Path) -> None:
    path, names = tmp_path / name, ["0", "1", "2"] if name in NUMBERED else NAMES
    content = {**NAMED, **NUMBERED}.get(name, "")
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if name == "p.xlsx":
        as_xlsx(path, SHEET)
    classes, scores, target = read(path)
    places = [classes.index(name) for name in names]
    assert [[row[place] for place in places] for row in scores] == PROBS
    assert [places.index(label) for label in target] == NUMBERS


def test_a_sheet_without_names_has_the_columns_of_its_longest_row(tmp_path: Path) -> None:
    as_xlsx(tmp_path / "p.xlsx", [[1, 0.2], [0, 0.7, 0.3]])
    assert len(open_table(tmp_path / "p.xlsx").names) == 3


@pytest.mark.parametrize("name", ["no header.csv", "no header.tsv", "p.npy"])
def test_scores_without_names_are_read_by_place_and_that_is_told(
    name: str, tmp_path: Path
) -> None:
    path, labels = tmp_path / name, tmp_path / "labels.txt"
    if name == "p.npy":
        np.save(path, np.array(PROBS))
    else:
        path.write_text(
            "".join(
                ("\t" if "tsv" in name else ",").join(map(str, row)) + "\n" for row in PROBS
            )
        )
    labels.write_text("\n".join(map(str, NUMBERS)))
    assert read(path, labels=labels) == (["0", "1", "2"], PROBS, NUMBERS)
    labels.write_text("\n".join(["label", *LABELS]))
    with refused_file("which_order", size=3):
        read(path, labels=labels)
    assert read(path, labels=labels, classes=NAMES) == (NAMES, PROBS, NUMBERS)
    assert (
        "no names: by place"
        in Predictions(path, ReadOptions(labels=labels, classes=NAMES)).how()
        or name == "p.npy"
    )
