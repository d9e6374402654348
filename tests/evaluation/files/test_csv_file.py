"""Csv files: pyarrow reads what Python's csv module reads."""

import csv
import io
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mpcs_torch.evaluation.files import delimited
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.evaluation.files.tables import is_gap, to_number
from tests.refused import refused_file

NUMBERS = [
    "0",
    " 0.25",
    "0.25 ",
    "-2e-3",
    "+1",
    ".5",
    "1.",
    "inf",
    "-Infinity",
    "NaN",
    "1e-400",
    "1e400",
    "1_000",
]
NO_NUMBERS = ["", "x", "0x10", "null", "NA", "1,5", "--1", "0.1 2", "٣x"]
TEXTS = ["cat", " dog ", "", "a,b", 'a "b"', "two\nlines", "é", "NaN", "1"]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw a file with columns id, number and text, in which at most one row is malformed."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    texts, numbers = (
        st.sampled_from(TEXTS),
        st.sampled_from(NUMBERS) | st.floats().map(repr),
    )
    names = texts | st.just("two\r\nlines")
    rows = draw(st.lists(st.tuples(names, numbers, texts) | st.just(()), max_size=30))
    malformed = st.tuples(names, st.sampled_from(NO_NUMBERS), texts) | st.lists(
        texts, min_size=1
    ).filter(is_ragged)
    for row in draw(st.lists(malformed, max_size=1)):
        rows.insert(draw(st.integers(0, len(rows))), tuple(row))
    quoted = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    lines = [
        _line(["id", " number", "text"], csv.QUOTE_MINIMAL),
        *(_line(row, quoted) for row in rows),
    ]
    text = (
        draw(st.sampled_from(["", newline]))
        + newline.join(lines)
        + draw(st.sampled_from(["", newline]))
    )
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def is_ragged(row: list[str]) -> bool:
    return len(row) != 3


def _line(values: Sequence[str], quoting: Any) -> str:
    if not values:
        return ""
    line = io.StringIO()
    csv.writer(line, quoting=quoting).writerow(values)
    return line.getvalue().removesuffix("\r\n")


def read(path: Path) -> list[tuple[float, str]] | str:
    """Return the number and the text of all rows, or the error."""
    try:
        columns = open_table(path).read(["number", "text"])
        return [
            *zip(
                columns.numbers("number").tolist(),
                columns.columns["text"].to_pylist(),
                strict=True,
            )
        ]
    except PredictionsError as error:
        return str(error)


def by_python(path: Path) -> list[tuple[float, str]] | str:
    """Return what `read` does by Python's csv module; of an error, only the place."""
    dialect = delimited.sniff(path, path.read_bytes())
    assume(dialect.names == ["id", "number", "text"] and dialect.decimal == ".")
    numbers = list[tuple[float, str]]()
    faults = list[str]()
    with path.open(encoding=dialect.encoding, newline="") as lines:
        below = itertools.islice(lines, dialect.first_lines, None)
        rows = filter(None, csv.reader(below, delimiter=dialect.delimiter))
        for place, row in enumerate(rows, start=1):
            if len(row) != 3:
                return f"row {place}, column "
            number = np.nan if is_gap(row[1]) else to_number(row[1])
            if number is None:
                faults.append(f"row {place}, column number: must be a number")
            else:
                numbers.append((number, row[2]))
    return faults[0] if faults else numbers


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(content=files(), block=st.sampled_from([64, 512, 2**20]))
def test_pyarrow_reads_what_python_reads(
    content: bytes, block: int, tmp_path: Path
) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK_BYTES", block)
        patch.setattr(delimited, "BYTES_PER_VALUE", 1)
        found = read(path)
    expected = by_python(path)
    if isinstance(expected, str):
        assert expected in str(found)
    else:
        np.testing.assert_equal(found, expected)


def test_rows_after_a_number_that_pyarrow_does_not_know_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 512)
    path, rows = tmp_path / "p.csv", [f"a,{number},x" for number in range(2000)]
    rows[1200] = "a,1_200,x"
    path.write_text("\n\n".join(["id,number,text", *rows]))
    assert read(path) == [(number, "x") for number in range(2000)]
    rows[1500] = "a,1500"
    path.write_text("\n\n".join(["id,number,text", *rows]))
    missing = "row 1501, column text: is missing: the row has 2 of 3 values"
    assert missing in str(read(path))


def test_texts_among_numbers_are_read_in_utf_16_too(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,number,text\na,0.5,cat\nb,1_000,dog\n", encoding="utf-16-le")
    assert read(path) == [(0.5, "cat"), (1000, "dog")]
    path.write_text("id,number,text\na,0.5,cat\nb,1\n", encoding="utf-16-le")
    assert "row 2, column text: is missing: the row has 2 of 3" in str(read(path))


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_without_pyarrow_the_error_says_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / name).write_text("target,a,b\n0,0.5,0.5\n")
    with refused_file("requires", package="pyarrow", extra="cli"):
        open_table(tmp_path / name).peek()
