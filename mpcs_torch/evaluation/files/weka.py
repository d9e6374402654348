"""Text of Weka as plain csv: ARFF tables, and predictions whose distribution takes several columns."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from mpcs_torch.io.untrusted_files import FileRuleError

HEADER = b"inst#,actual,predicted,error,distribution"
"""The first line of the predictions that Weka writes as csv."""
ATTRIBUTE = re.compile(
    r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s", re.IGNORECASE
)
"""A pattern for the declaration of a column in an ARFF table."""

DATA = re.compile(r"^\s*@data\s*$", re.IGNORECASE | re.MULTILINE)
"""A pattern for the line before the rows of an ARFF table."""


def is_arff(start: bytes) -> bool:
    """Return whether a file that begins with ``start`` is an ARFF table: after comments, it names a relation."""
    lines = (line.strip() for line in start.lower().splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.startswith(b"@relation")


def arff_as_csv(text: str) -> str:
    """Return an ARFF table as csv with a header. A missing value, ``?``, stays as it is.

    Raises:
        FileRuleError: If there is no ``@data``, or rows are sparse.
    """
    parts = DATA.split(text, maxsplit=1)
    head, data = parts[0], parts[-1]
    names = [match[1].strip("'\"") for match in ATTRIBUTE.finditer(head)]
    if len(parts) < 2 or not names:
        raise FileRuleError("arff")
    filled = [line for line in data.splitlines() if line.strip()]
    lines = [line for line in filled if not line.lstrip().startswith("%")]
    if any(line.lstrip().startswith("{") for line in lines):
        raise FileRuleError("dense_rows")
    quote = "'" if "'" in data else '"'
    rows = csv.reader(lines, quotechar=quote, escapechar="\\", skipinitialspace=True)
    return _as_csv([names, *rows])


def distribution_as_csv(text: str) -> str:
    """Return predictions of Weka with a column for each class. ``3:c`` is class c, the third; ``*`` marks the best."""
    rows = list(csv.reader(io.StringIO(text)))
    header, *values = [row for row in rows if row]
    fixed = len(header) - 1
    size = max(map(len, values), default=fixed) - fixed
    by_place: dict[int, str] = {}
    for row in values:
        by_place.update(_classes_in(row[1:3]))
    classes = [by_place.get(place, f"class {place}") for place in range(1, size + 1)]
    rows_of_table = [_plain_row(row, fixed) for row in values]
    return _as_csv([[*header[:fixed], *classes], *rows_of_table])


def _classes_in(cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    for cell in cells:
        place, mark, name = cell.partition(":")
        if mark and place.isdecimal() and name != "?":
            yield int(place), name


def _plain_row(row: Sequence[str], fixed: int) -> list[str]:
    labels = [cell.partition(":")[2] or cell for cell in row[1:3]]
    scores = [cell.removeprefix("*") for cell in row[fixed:]]
    return [*row[:1], *labels, *row[3:fixed], *scores]


def _as_csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
