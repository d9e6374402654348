"""Read text tables: infer the dialect (delimiter, header, ...) from the content, and read the rows."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.read_options import NoRowsError, PredictionsError
from mpcs_torch.evaluation.files.tables import (
    DECIMAL_COMMA,
    column_kind,
    to_number,
    unnamed,
)
from mpcs_torch.evaluation.files.words import is_column_name, is_label, target_or_not
from mpcs_torch.io.untrusted_files import MAX_COLUMNS, MAX_LINE_BYTES, FileRuleError

BLOCK_BYTES = 2**20
"""The minimum size of the blocks that pyarrow reads."""
BYTES_PER_VALUE = 64
"""The minimum size of a block for each column of the table, because a row must fit in a block."""
SNIFFED_ROWS = 50
"""The maximum number of rows from which the dialect is inferred."""
SNIFFED_BYTES = 2**16
"""The number of bytes from which the dialect is inferred, besides the rest of their last line and the next line."""
SPACE = " "
"""The delimiter that means any white space."""
DELIMITERS = {
    ",": "",
    ";": "separated by semicolons",
    "\t": "separated by tabs",
    "|": "separated by |",
    SPACE: "separated by white space",
}
QUOTED = re.compile(r'(?:^|[\t\n])"([^"]*)"')
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
ENCODINGS = (
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)


class Dialect(NamedTuple):
    """The encoding, delimiter, decimal mark and header of a text table."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_names: bool
    first_lines: int
    """The number of lines before the first row, that is, of comments and the header."""
    unusual: list[str]
    """Phrases that describe what is unusual in the dialect."""
    has_quotes: bool = True
    """Whether quotes enclose texts; if not, they are characters as any others, as among the words of a sentence."""


def detect_encoding(start: bytes) -> str:
    """Return the encoding of a text file, judged by its first bytes ``start``."""
    for mark, encoding in ENCODINGS:
        if start.startswith(mark):
            return encoding
    # In UTF-16 without a mark, one of the two bytes of most letters is 0.
    for low, high, encoding in ((0, 1, "utf-16-le"), (1, 0, "utf-16-be")):
        zeros = start[high::2].count(0)
        if len(start) > 1 and not start[low::2].count(0) and zeros * 4 > len(start):
            return encoding
    return "utf-8-sig"


def sniff(path: Path, content: bytes) -> Dialect:
    """Infer the dialect of a text table from the first rows of ``content``."""
    encoding, lines = _first_lines(path, content)
    comments = 0
    while comments < len(lines) and lines[comments].startswith(("#", "sep=")):
        comments += 1
    delimiter, rows = _best_split(lines[comments:])
    if not rows and any(map(str.strip, lines[comments:])):
        raise PredictionsError(
            path, Rule("length_of_value", maximum=csv.field_size_limit())
        )
    if not rows:
        raise NoRowsError(path, Rule("rows_in_file"))
    comment = lines[comments - 1] if comments and delimiter != SPACE else ""
    if comment.startswith("#") and len(_split([comment], delimiter)[0]) == len(rows[0]):
        comments -= 1  # the header begins with #
        rows.insert(0, _split([comment.lstrip("# ")], delimiter)[0])
    _check_header_once(path, rows)
    has_names = has_header(rows, delimiter)
    decimal = _decimal_mark(rows[1:] if has_names else rows, delimiter)
    names = unnamed(len(rows[0]))
    first_lines = comments
    if has_names:
        names = _column_names(rows)
        first_lines += _header_lines(lines[comments:], delimiter)
    is_nameless = has_names and "".join(rows[0]).strip() == "0"
    if is_nameless:
        has_names = False
        numbered = zip(rows[0], names, unnamed(len(rows[0])), strict=True)
        names = [new if cell else name for cell, name, new in numbered]
    has_quotes = True
    if delimiter == "\t" and b'"' in content:
        whole_text = content.decode(encoding, "ignore")
        has_quotes = not _swallow_rows(whole_text, len(names))
    signs = [
        (encoding.startswith("utf-16"), "UTF-16"),
        (delimiter != ",", DELIMITERS[delimiter]),
        (decimal == ",", "decimal commas"),
        (comments > 0, f"{comments} lines of comments"),
        (is_nameless, "a header without names"),
        (not has_names and not is_nameless, "no header"),
        (not has_quotes, "quotes are characters"),
    ]
    unusual = [phrase for is_so, phrase in signs if is_so]
    return Dialect(
        encoding, delimiter, decimal, names, has_names, first_lines, unusual, has_quotes
    )


def _first_lines(path: Path, content: bytes) -> tuple[str, list[str]]:
    """Return the encoding of a text table, and its first lines, of which none is cut off."""
    file = io.BytesIO(content)
    start = (
        file.read(SNIFFED_BYTES)
        + file.readline(MAX_LINE_BYTES)
        + file.readline(MAX_LINE_BYTES)
    )
    encoding = detect_encoding(start)
    text = start.decode(encoding, "ignore")  # reading the rows reports undecodable text
    if "\0" in text:
        raise PredictionsError(path, Rule("known_format"))
    if encoding.startswith("utf-8"):
        # Letters that were ignored above must not be missing in the names of columns: this raises an error for them.
        start[: start.find(b"\n") + 1].decode(encoding)
    lines = io.StringIO(text, newline="").readlines()
    if len(start) < len(content):
        lines = lines[:-1]  # it may be cut
        if not lines:
            raise FileRuleError("size_at_most", "the first line", maximum=MAX_LINE_BYTES)
    return encoding, lines


def _decimal_mark(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return "," if numbers in ``rows`` have decimal commas, and none has a decimal point; else "."."""
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if not commas or any(map(DECIMAL_POINT.fullmatch, cells)):
        return "."
    # In a table that commas separate, only 0,5 in quotes is surely a decimal number: 1,234 may be a whole one.
    if delimiter == "," and not all(cell.startswith("0,") for cell in commas):
        return "."
    return ","


def _column_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of the columns from the header, the first of ``rows``; empty names are numbered from 0."""
    header, *others = rows
    names = [cell.strip() or f"Unnamed: {place}" for place, cell in enumerate(header)]
    if len(others) > 1 and all(len(row) == len(names) + 1 for row in others):
        # The header lacks a name: R gives none to its first column of row names, and rows may end with a delimiter.
        if any(row[-1].strip() for row in others):
            names.insert(0, "Unnamed: 0")
        else:
            names.append(f"Unnamed: {len(names)}")
    return names


def _swallow_rows(content: str, columns: int) -> bool:
    """Return whether a text in quotes has line breaks and, between these, all tabs of the rows that it takes in."""
    texts = (match[1] for match in QUOTED.finditer(content))
    return any(
        "\n" in text and text.count("\t") == text.count("\n") * (columns - 1)
        for text in texts
    )


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    with suppress(csv.Error):  # a field is too long
        return [row for row in _reader(lines, delimiter) if row]
    return []


def _reader(lines: Iterable[str], delimiter: str) -> Any:
    """Return a csv reader of ``lines``. With the delimiter `SPACE`, any run of white space separates fields."""
    if delimiter == SPACE:
        lines = (" ".join(line.split()) for line in lines)
    return csv.reader(lines, delimiter=delimiter)


def _best_split(lines: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Return the delimiter that splits rows most evenly (in a tie: into most numbers), and the split rows."""
    split = (",", _split(lines, ",")[: SNIFFED_ROWS + 1])
    best = (-1.0, False, False, -1.0)
    for delimiter in DELIMITERS:
        rows = _split(lines, delimiter)[: SNIFFED_ROWS + 1]
        columns = max(map(len, rows), default=0)
        if columns > MAX_COLUMNS:
            raise FileRuleError("columns_at_most", "", columns, maximum=MAX_COLUMNS)
        if not rows or len(rows[0]) < 2:
            continue
        is_one_column = delimiter == SPACE and {*map(len, rows[1:])} == {1}
        if is_one_column and {*map(to_number, rows[0])} == {None}:
            continue  # its name is of several words
        lengths = [len(row) - len(rows[0]) for row in rows]
        # Rows are as long as the header, or all are longer by one, if it has no name for the names of rows.
        share = max(lengths.count(0), lengths[1:].count(1)) / len(rows)
        cells = [cell.strip().replace(",", ".") for row in rows for cell in row]
        numbers = sum(to_number(cell) is not None for cell in cells) / len(cells)
        # Compared from the left: each item decides if those before it are equal.
        key = (round(share, 1), numbers > 0, delimiter != SPACE, round(numbers, 3))
        if key > best:
            best = key
            split = (delimiter, rows)
    return split


def _header_lines(lines: Sequence[str], delimiter: str) -> int:
    """Return the number of lines that the header takes; a quoted name may contain line breaks."""
    reader = _reader(lines, delimiter)
    for row in reader:
        if row:  # the header: the reader counts the lines up to its end
            break
    return int(reader.line_num)


def _check_header_once(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Refuse a file in which a first row of usual names of columns occurs again, as in files that were appended."""
    first = [*rows[0]]
    are_usual = [is_column_name(name) or is_label(name) for name in first]
    if sum(are_usual) > 1 and first in map(list, rows[1:]):
        raise PredictionsError(path, Rule("repeated_header"))


def has_header(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Return whether the first row is a header, judged by its cells and by the values below."""
    first = [cell.strip() for cell in rows[0]]
    others = rows[1:]
    columns = [
        [row[place] for row in others if place < len(row)] for place in range(len(first))
    ]
    kinds = [column_kind(column) for column in columns]
    numbers = [to_number(cell) for cell in first]
    numeric = [place for place, number in enumerate(numbers) if number is not None]
    cells_of_numbers = [first[place] for place in numeric]
    below = {kinds[place] for place in numeric}
    # Whole numbers above whole numbers may be values.
    may_be_names = not others or below & {"number", "text", "nested"}
    if may_be_names and _are_numbered_names(cells_of_numbers, columns, numeric):
        return True
    if any(number is not None and number % 1 for number in numbers):
        return False
    of_numbers = [
        place for place, kind in enumerate(kinds) if kind in ("whole", "number", "list")
    ]
    above_numbers = [first[place] for place in of_numbers if numbers[place] is None]
    if numeric or any(above_numbers):
        kinds_above = [column_kind([cell]) for cell in above_numbers]
        return any(above_numbers) and "list" not in kinds_above
    for cell, column in zip(first, columns, strict=True):
        is_repeated = cell and cell in map(str.strip, column)
        are_labels = column and None not in map(target_or_not, (cell, *column))
        if is_repeated or are_labels:
            return False
    return delimiter != SPACE or any(map(is_column_name, first))


def _are_numbered_names(
    cells: Sequence[str], columns: Sequence[Sequence[str]], places: Sequence[int]
) -> bool:
    """Return whether all ``cells`` of a first row that are numbers, at ``places``, are names: 0, 1, ... or 1, 2, ...

    ``columns`` are the cells below each cell of the row.
    """
    if not all(map(str.isdecimal, cells)):  # 1.0 is no name
        return False
    in_order = sorted(map(float, cells))
    if in_order == [0]:
        # pandas names a column 0 if it has no name, but writes the number 0.0 among decimals.
        column = columns[places[0]]
        return not any(cell.strip().isdecimal() for cell in column)
    size = len(in_order)
    return size > 1 and in_order in ([*range(size)], [*range(1, size + 1)])


def read_text(
    path: Path,
    dialect: Dialect,
    read: Callable[[], bytes],
    wanted: Sequence[str],
    numbers: Collection[str],
    rows: int | None,
) -> dict[str, Any]:
    """Read the ``wanted`` columns as Arrow arrays: at least the first ``rows`` rows, or all rows if ``rows`` is None.

    The columns in ``numbers`` become numbers. If pyarrow knows a value of them as none, all are read as texts.
    """
    import pyarrow

    content = read()
    if not dialect.encoding.startswith("utf-8"):
        content = _decoded(path, dialect, content).encode()
        dialect = dialect._replace(encoding="utf-8")
    places: dict[str, int] = {}
    for place, name in enumerate(dialect.names):
        places.setdefault(name, place)  # a repeated name means its first column
    is_number = {places[name]: name in numbers for name in wanted}
    try:
        table = _by_arrow(path, dialect, content, is_number, rows)
    except pyarrow.ArrowException:
        lines = io.StringIO(_decoded(path, dialect, content))
        if not any(line.strip("\r\n") for line in islice(lines, dialect.first_lines, None)):
            return {name: pyarrow.array([], pyarrow.string()) for name in wanted}
        # A row may be longer than a block, too.
        texts = dict.fromkeys(is_number, False)
        table = _by_arrow(path, dialect, content, texts, rows, block=len(content))
    return {name: table.column(str(places[name])).combine_chunks() for name in wanted}


def _by_arrow(
    path: Path,
    dialect: Dialect,
    content: bytes,
    is_number: Mapping[int, bool],
    rows: int | None,
    *,
    block: int = 0,
) -> Any:
    """Read the columns whose indices are keys of ``is_number``, as numbers if the value is True; name them by index."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    names = dialect.names
    if dialect.delimiter == SPACE:
        content = _single_spaces(content)
    types = {
        str(place): pyarrow.float64() if is_one else pyarrow.string()
        for place, is_one in is_number.items()
    }
    # Arrow's threads may drop their last buffer when Python has ended, and abort the process if Python owns it.
    owned = pyarrow.BufferOutputStream()
    owned.write(content)
    source = owned.getvalue()
    reading = arrow_csv.ReadOptions(
        use_threads=False,  # else pyarrow does not number the rows that it refuses
        block_size=max(BLOCK_BYTES, BYTES_PER_VALUE * len(names), block),
        skip_rows=dialect.first_lines,
        column_names=[str(place) for place in range(len(names))],  # may be repeated
    )
    parsing = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char='"' if dialect.has_quotes else False,
        newlines_in_values=True,
    )
    # Without null_values, pyarrow reads an empty text and "NaN" as Python does.
    converting = arrow_csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=[],
        decimal_point=dialect.decimal,
    )
    try:
        opened = arrow_csv.open_csv(
            pyarrow.BufferReader(source), reading, parsing, converting
        )
        with opened as reader:
            if rows is None:
                return reader.read_all()
            return pyarrow.Table.from_batches(islice(reader, 1), reader.schema)
    except pyarrow.ArrowInvalid:
        if any(is_number.values()):
            raise  # a number that pyarrow does not know, or a bad row, which reading all as texts tells
        _decoded(path, dialect, content)  # pyarrow gives the row as text
        refused_rows = list[Any]()

        def refuse(row: Any) -> str:
            refused_rows.append(row)
            return "error"

        # Only this thread may hold a function of Python: another thread could drop it when Python has ended.
        parsing.invalid_row_handler = refuse
        with suppress(pyarrow.ArrowInvalid):
            arrow_csv.read_csv(pyarrow.BufferReader(source), reading, parsing, converting)
        if not refused_rows:
            raise
    raise _error_of_row(path, dialect, refused_rows[0])


def _error_of_row(path: Path, dialect: Dialect, refused: Any) -> PredictionsError:
    """Return the error of a row that pyarrow refused, because it has fewer or more values than names."""
    number = refused.number - dialect.first_lines
    size = refused.actual_columns
    names = dialect.names
    if size < len(names):
        rule = Rule("all_values_of_row", number=size, names=len(names))
        return PredictionsError(path, rule, row=number, column=names[size])
    rule = Rule("name_of_value", number=size)
    return PredictionsError(path, rule, row=number, column=len(names) + 1)


def _single_spaces(content: bytes) -> bytes:
    """Replace each run of white space in lines by one space, and none at their ends; linear in long runs, too."""
    content = content.translate(bytes.maketrans(b"\t\r", b"  "))
    while b"  " in content:  # each pass halves the longest run
        content = content.replace(b"  ", b" ")
    return content.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def _decoded(path: Path, dialect: Dialect, content: bytes) -> str:
    try:
        return content.decode(dialect.encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PredictionsError(
            path, Rule("utf_8_in_line", error=error, line=line)
        ) from None
