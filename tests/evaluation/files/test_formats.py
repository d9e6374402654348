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


def text(
    delimiter: str = ",", end: str = "\n", before: str = "", *, header: bool = True
) -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
    writer.writerows(
        [*([list(COLUMNS)] if header else []), *(record.values() for record in RECORDS)]
    )
    return before + file.getvalue()


def written(write: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def as_xlsx() -> bytes:
    openpyxl = pytest.importorskip("openpyxl", reason="xlsx needs openpyxl")
    book = openpyxl.Workbook()
    for row in [list(COLUMNS), *(list(record.values()) for record in RECORDS)]:
        book.active.append(row)
    return written(book.save)


def lines(values: list[Any]) -> bytes:
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


PLAIN = text()
NAMED: dict[str, Callable[[], bytes]] = {
    "p.csv": PLAIN.encode,
    "semicolons.csv": text(";").encode,
    "decimal commas.csv": lambda: text(";").replace(".", ",").encode(),
    "tabs.tsv": text("\t").encode,
    "bars.txt": text("|").encode,
    "spaces.txt": lambda: text(" ").replace('"b 3"', "b3").replace(" ", "   ").encode(),
    "crlf.csv": text(end="\r\n").encode,
    "no last end.csv": PLAIN.rstrip().encode,
    "comments.csv": text(before="# made by hand\n# twice\n").encode,
    "header with a comment.csv": text(before="# ").encode,
    "empty lines.csv": PLAIN.replace("\n", "\n\n").encode,
    "bom.csv": lambda: PLAIN.encode("utf-8-sig"),
    "utf-16.csv": lambda: PLAIN.encode("utf-16"),
    "utf-16 LE.csv": lambda: PLAIN.encode("utf-16-le"),
    "utf-16 BE.csv": lambda: PLAIN.encode("utf-16-be"),
    "utf-16 tabs.txt": lambda: text("\t").encode("utf-16"),
    "p.csv.gz": lambda: gzip.compress(PLAIN.encode()),
    "p.csv.bz2": lambda: bz2.compress(PLAIN.encode()),
    "p.csv.zst": lambda: pyarrow.Codec("zstd").compress(PLAIN.encode(), asbytes=True),
    "p.jsonl": lambda: lines(RECORDS),
    "p.jsonl.gz": lambda: gzip.compress(lines(RECORDS)),
    "array.json": lambda: json.dumps(RECORDS).encode(),
    "indented.json": lambda: json.dumps(RECORDS, indent=2).encode(),
    "columns.json": lambda: json.dumps(COLUMNS).encode(),
    "by id.json": lambda: json.dumps(
        {record["id"]: {**record, "id": None} for record in RECORDS}
    ).encode(),
    "nested.jsonl": lambda: lines(
        [{"label": r["label"], "probs": {name: r[name] for name in NAMES}} for r in RECORDS]
    ),
    "pipeline.jsonl": lambda: lines(LABELLED),
    "pipeline.json": lambda: json.dumps(LABELLED).encode(),
    "p.xlsx": as_xlsx,
    "p.parquet": lambda: written(
        lambda file: parquet.write_table(TABLE, file, row_group_size=3)
    ),
    "coded.parquet": lambda: written(lambda file: parquet.write_table(CODED, file)),
    "no suffix": PLAIN.encode,
}
NUMBERED: dict[str, Callable[[], bytes]] = {
    "lists.parquet": lambda: written(lambda file: parquet.write_table(LISTS, file)),
    "lists.jsonl": lambda: lines(LISTS.to_pylist()),
    "lists.csv": lambda: (
        "label,probs\n"
        + "".join(f'{n},"{row}"\n' for n, row in zip(NUMBERS, PROBS, strict=True))
    ).encode(),
    "p.npz": lambda: written(lambda file: np.savez(file, **ARRAYS)),
    "packed.npz": lambda: written(lambda file: np.savez_compressed(file, **ARRAYS)),
    "p.pt": lambda: written(
        lambda file: torch.save({n: torch.from_numpy(a) for n, a in ARRAYS.items()}, file)
    ),
    "numbered.csv": text()
    .replace("cat,dog,owl", "p_0,p_1,p_2")
    .replace(",cat", ",0")
    .replace(",dog", ",1")
    .replace(",owl", ",2")
    .encode,
}


def read(path: Path, **options: Any) -> tuple[list[str], list[list[float]], list[int]]:
    opened = Predictions(path, ReadOptions(**options))
    assert opened.how().startswith(path.name)
    rows = opened.rows()
    return opened.class_names, rows.scores.tolist(), rows.target.tolist()


@pytest.mark.parametrize("name", [*NAMED, *NUMBERED])
def test_every_format_is_read_as_the_plain_table_is(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes({**NAMED, **NUMBERED}[name]())
    classes, scores, target = read(tmp_path / name)
    assert [
        [row[classes.index(each)] for each in (NAMES if name in NAMED else "012")]
        for row in scores
    ] == PROBS
    assert [classes[label] for label in target] == (
        LABELS if name in NAMED else [*map(str, NUMBERS)]
    )


def test_a_sheet_without_names_has_the_columns_of_its_longest_row(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="xlsx needs openpyxl")
    book = openpyxl.Workbook()
    for row in ([1, 0.2], [0, 0.7, 0.3]):
        book.active.append(row)
    book.save(tmp_path / "p.xlsx")
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
