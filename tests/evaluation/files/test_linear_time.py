"""Reading takes time in proportion to the size of the input, whatever grows: rows, columns, names, cells or blanks."""

import gc
import gzip
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from mpcs_torch.concern import load_concern
from mpcs_torch.errors import MpcsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from mpcs_torch.learning.checkpoint_files import Manifest
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.result import read_records

FACTOR, MAX_RATIO = 4, 9.0
"""An input of `FACTOR` times the size takes at most `MAX_RATIO` times as long, 3 times for each doubling. For linear
readers, the ratio is 4, and for quadratic readers 16."""
MIN_SECONDS = 0.05
"""Times below this are counted as this: they are mostly noise."""
TRIES = 4
Write = Callable[[Path, int], object]


class Growing(NamedTuple):
    """A reader, and a function that writes a file of a size in the folder that is given."""

    read: Callable[[Path], object]
    write: Write
    size: int
    """The smaller size."""


def text(content: Callable[[int], str], name: str = "p.csv") -> Write:
    return lambda folder, size: (folder / name).write_text(content(size))


def repeated(part: str, name: str = "p.csv", before: str = "", after: str = "") -> Write:
    """Write a part as often as the size says, perhaps with text before and after."""
    return text(lambda size: before + part * size + after, name)


def scores(folder: Path) -> object:
    labels = folder / "labels.csv"
    return Predictions(
        folder / "p.csv", ReadOptions(labels=labels if labels.exists() else None)
    ).rows()


def trials(folder: Path, **options: Any) -> object:
    labels = folder / "labels"
    reading = ReadOptions(labels=labels if labels.exists() else None)
    return read_trials(folder / "t", reading, lambda rows: None, **options)


def concern(folder: Path) -> object:
    return load_concern(folder / "c")


def table(folder: Path) -> object:
    [path] = folder.iterdir()
    opened = open_table(path)
    opened.peek()
    return opened.read(opened.names)


def rows_of(
    names: list[str], cells: list[str], labels: str = "ab", number: int = 20
) -> str:
    """Return csv text with the columns ``names`` and ``label``: equal ``cells`` in each row, and ``labels`` in turn."""
    lines = [",".join([*cells, labels[row % len(labels)]]) for row in range(number)]
    return "\n".join([",".join([*names, "label"]), *lines, ""])


def one_hot_columns(size: int, name: str) -> str:
    cells = ["0"] * (size - 1) + ["1"]
    lines = [",".join([*cells, name.format(row)]) for row in range(20)]
    return "\n".join([",".join([*map(name.format, range(size)), "label"]), *lines, ""])


def families(size: int) -> str:
    """Write pairs of columns, such as qaaa_0 and qaaa_1, that each sum to 1."""
    words = map("".join, product("abcdefghij", repeat=4))
    names = [
        f"q{word}_{place}"
        for word, _ in zip(words, range(size // 2), strict=False)
        for place in range(2)
    ]
    return rows_of(names, ["0.5"] * len(names))


def prefixes(size: int) -> str:
    """Write columns that all may be soft labels, each with another prefix."""
    names = [
        f"{'$' * (place % 30 + 1)}target{'$' * (place // 30)}_c{place % 2}"
        for place in range(size)
    ]
    return rows_of([*names, "c0", "c1"], ["0.5"] * (size + 2))


def soft_labels(folder: Path, size: int) -> None:
    for name, prefix in (("p.csv", "p_"), ("labels.csv", "target_")):
        header = ",".join(f"{prefix}c{place}z" for place in range(size))
        (folder / name).write_text(
            "\n".join([header, *[",".join(["0.3"] * size)] * 20, ""])
        )


def wide_trials(size: int) -> str:
    return "".join(
        f"{' '.join([f'u{row}x'] * size)} {row / 7} {['target', 'other'][row % 2]}\n"
        for row in range(20)
    )


def kaldi(folder: Path, size: int) -> None:
    pairs = [f"m{row} t{row}" for row in range(size)]
    (folder / "t").write_text(
        "".join(f"{pair} {row / 7}\n" for row, pair in enumerate(pairs))
    )
    (folder / "labels").write_text(
        "".join(f"{pair} {row % 2}\n" for row, pair in enumerate(pairs))
    )


def columns(size: int) -> pyarrow.Table:
    return pyarrow.table(
        {"a": np.full(size, 0.5), "name": [f"n{row}" for row in range(size)]}
    )


def wide(size: int) -> pyarrow.Table:
    return pyarrow.table({f"x{place}y": ["a"] * 20 for place in range(size)})


def xlsx(folder: Path, size: int, width: int = 3) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append([f"x{place}" for place in range(width)])
    for _ in range(size):
        sheet.append([0.5] * width)
    book.save(folder / "p.xlsx")


def hdf5(folder: Path, size: int) -> None:
    with h5py.File(folder / "k.h5", "w") as file:
        file["modelset"] = np.array([f"m{row}".encode() for row in range(size)])
        file["segset"] = np.array([f"s{column}".encode() for column in range(30)])
        file["trial_mask"] = np.where(
            np.arange(size)[:, None] % 2, 1, np.full(30, -1)
        ).astype(np.int8)


def manifest(folder: Path, size: int) -> None:
    lines = ['{"format": 2, "rule": {"by": "mpcs"}, "settings": {}, "epochs": []}\n']
    for number in range(1, size):
        epoch = {
            "number": number,
            "values": {"mpcs": 0.5},
            "file": f"epoch-{number:05}.pt",
            "sha256": "ab",
        }
        dropped = {"dropped": [f"epoch-{number - 1:05}.pt"]} if number > 1 else {}
        lines.append(json.dumps({**epoch, **dropped}) + "\n")
    (folder / "manifest.json").write_text("".join(lines))


RECORD = '{"a": 0.5, "b": 0.5, "label": "a"}'
SCORED = (
    '{"scores": [{"label": "a", "score": 0.5}, {"label": "b", "score": 0.5}], "label": "a"}'
)
CONFIG = "name: mine\ndata: {name: digits, validation_fraction: 0.2}\nmodel: {name: mlp}\n"
CLASSES = "classes: [a, b]\n"
READERS: Mapping[str, Growing] = {
    "rows": Growing(scores, repeated("0.5,0.5,a\n", before="a,b,label\n"), 300_000),
    "rows without numbers": Growing(
        scores, repeated("x,0.5,a\n", before="a,b,label\n"), 30_000
    ),
    "rows before a short one": Growing(
        table, repeated("0.5,0.5\n", before="a,b\n", after="1\n"), 100_000
    ),
    "rows packed by gzip": Growing(
        table,
        lambda folder, n: (folder / "p").write_bytes(
            gzip.compress(b"a,b\n" + b"0.5,0.5\n" * n)
        ),
        300_000,
    ),
    "rows of utf-16": Growing(
        table,
        lambda f, n: (f / "p").write_bytes(("a,b\n" + "1,2\n" * n).encode("utf-16")),
        300_000,
    ),
    "rows of lists": Growing(
        scores, repeated('"[0.5,0.5]",0\n', before='probs,label\n"[1,0]",1\n'), 20_000
    ),
    "columns of scores": Growing(scores, text(lambda n: one_hot_columns(n, "p{}")), 3000),
    "columns of named classes": Growing(
        scores, text(lambda n: one_hot_columns(n, "c{}x")), 3000
    ),
    "columns of families": Growing(scores, text(families), 4000),
    "columns of prefixes": Growing(scores, text(prefixes), 1500),
    "columns of soft labels": Growing(scores, soft_labels, 1500),
    "columns of text": Growing(
        scores,
        text(
            lambda n: rows_of(
                [*(f"t{place}x" for place in range(n)), "a", "b"], ["t"] * n + ["0.5"] * 2
            )
        ),
        5000,
    ),
    "columns named as labels": Growing(
        scores,
        text(
            lambda n: rows_of(
                ["a", "b", *("$" * place + "gt" for place in range(1, n))],
                ["0.5"] * (n + 1),
            )
        ),
        400,
    ),
    "the length of a name": Growing(
        table, repeated("1", before="p", after="x1,b\n0.5,0.5\n"), 10**6
    ),
    "the length of a cell": Growing(
        table, text(lambda n: "a,b\n" + f"{'1' * n},2\n" * 1000), 10_000
    ),
    "lines of comments": Growing(
        table, text(lambda n: "# x\n" * n + "a,b\n" + "1,2\n" * n), 100_000
    ),
    "quotes": Growing(
        table,
        text(lambda n: "a,b\n" + '"x' + '""' * 50 + '",1\n' + '"x\n",1\n' * n),
        50_000,
    ),
    "blanks": Growing(
        trials, repeated(" ", "t", "u v 0.3 target\nx", "y 0.5 other\n"), 10**7
    ),
    "blanks at the end": Growing(
        trials,
        repeated(f"u v 0.3 target{' ' * 99}\n", "t", after="x y 0.5 other\n"),
        10**5,
    ),
    "empty lines": Growing(
        trials,
        repeated(" \t\n", "t", "u v 0.3 target\n", "x y 0.5 nontarget\n"),
        10**6,
    ),
    "columns of trials": Growing(trials, text(wide_trials, "t"), 4000),
    "two files of trials": Growing(partial(trials, named=True), kaldi, 20_000),
    "lines of JSON": Growing(table, repeated(f"{RECORD}\n", "p.jsonl"), 20_000),
    "records of JSON": Growing(
        table, repeated(f"{RECORD},", "p.json", "[", f"{RECORD}]"), 20_000
    ),
    "records of a pipeline": Growing(table, repeated(f"{SCORED}\n", "p.jsonl"), 10_000),
    "columns of JSON": Growing(
        table,
        text(lambda n: json.dumps([{f"k{k}": 0.5 for k in range(n)}] * 5), "p.json"),
        20_000,
    ),
    "ids of JSON": Growing(
        table,
        text(lambda n: json.dumps({f"i{k}": {"a": 0.5} for k in range(n)}), "p.json"),
        20_000,
    ),
    "brackets of JSON": Growing(table, repeated("[", "p.json"), 10**6),
    "digits of JSON": Growing(table, repeated("1", "p.json", '[{"a": ', "}]"), 10**6),
    "arrays": Growing(
        table,
        lambda folder, n: np.savez(
            folder / "p.npz",
            preds=np.zeros((9, 2)),
            **{f"x{k}": np.zeros(9) for k in range(n)},
        ),
        1000,
    ),
    "rows of arrays": Growing(
        table, lambda folder, n: np.save(folder / "p.npy", np.zeros((n, 2))), 2_000_000
    ),
    "lists of tensors": Growing(
        table,
        lambda f, n: torch.save(
            {"preds": torch.zeros(n, 2), "label": ["a", "b"] * (n // 2)}, f / "p.pt"
        ),
        50_000,
    ),
    "rows of parquet": Growing(
        table, lambda folder, n: parquet.write_table(columns(n), folder / "p"), 200_000
    ),
    "row groups of parquet": Growing(
        table,
        lambda folder, n: parquet.write_table(columns(n), folder / "p", row_group_size=10),
        10_000,
    ),
    "columns of parquet": Growing(
        table, lambda folder, n: parquet.write_table(wide(n), folder / "p"), 2000
    ),
    "rows of xlsx": Growing(table, xlsx, 2000),
    "columns of xlsx": Growing(table, lambda folder, n: xlsx(folder, 20, n), 500),
    "rows of HDF5": Growing(table, hdf5, 10_000),
    "classes": Growing(
        concern,
        text(lambda n: f"classes: [{', '.join(f'c{k}' for k in range(n))}]\n", "c"),
        1000,
    ),
    "unknown keys": Growing(
        concern,
        text(lambda n: CLASSES + "".join(f"k{k}: 1\n" for k in range(n)), "c"),
        1000,
    ),
    "wrong pairs": Growing(
        concern,
        repeated("[a, q], ", "c", f"{CLASSES}dangerous: [", "[a, q]]\n"),
        500,
    ),
    "a text of YAML": Growing(
        concern,
        repeated("x ", "c", f"{CLASSES}weights: ", "\n"),
        20_000,
    ),
    "unknown keys of a config": Growing(
        lambda folder: load_config(folder / "c"),
        text(lambda n: CONFIG + "".join(f"k{k}: 1\n" for k in range(n)), "c"),
        500,
    ),
    "records of epochs": Growing(
        lambda folder: read_records(folder / "r"),
        repeated("1,0.5\n", "r", "epoch,a\n"),
        50_000,
    ),
    "epochs of a manifest": Growing(Manifest.read, manifest, 2000),
}


def seconds(growing: Growing, folder: Path, size: int) -> float:
    """Return how long a reader takes for an input of a size, whether it reads or refuses it."""
    folder.mkdir()
    growing.write(folder, size)
    gc.disable()  # full collections come in steps, at some sizes and not at others
    started = time.process_time()
    with suppress(MpcsError):
        growing.read(folder)
    taken = time.process_time() - started
    gc.enable()
    return taken


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_the_time_of_reading_grows_no_faster_than_the_input(
    name: str, tmp_path: Path
) -> None:
    growing = READERS[name]
    small = large = float("inf")
    for number in range(TRIES):  # other processes may take time, too, so the minimum counts
        small = min(small, seconds(growing, tmp_path / f"small {number}", growing.size))
        large = min(
            large, seconds(growing, tmp_path / f"large {number}", FACTOR * growing.size)
        )
        if large < MAX_RATIO * max(small, MIN_SECONDS):
            return
    pytest.fail(f"{growing.size}: {small:.3f} s, {FACTOR * growing.size}: {large:.3f} s")


def test_a_run_of_blanks_within_a_line_is_read_like_one_blank(tmp_path: Path) -> None:
    """A quadratic reader would take many minutes for this line."""
    line = f"x{' ' * 400_000}y 0.5 nontarget \t\r\n"
    (tmp_path / "t").write_text(
        "u v 0.3 target\n" * 5 + line + " \t \n\t w z\t0.25  nontarget", newline=""
    )
    started = time.process_time()
    read = read_trials(
        tmp_path / "t", ReadOptions(by=["column 1", "column 2"]), lambda rows: None
    )
    assert time.process_time() - started < 10
    assert read.trials.scores.tolist() == [0.3] * 5 + [0.5, 0.25]
    assert [group.names for group in read.groups.values()] == [
        ["u", "x", "w"],
        ["v", "y", "z"],
    ]
