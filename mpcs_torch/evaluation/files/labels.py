"""Match the rows of two files by their names, and give a table the labels that another file has for its rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.tables import Batch, Column, Table, check_single, listed, text_of
from mpcs_torch.evaluation.files.words import is_index

if TYPE_CHECKING:
    import pyarrow

COMPARED = 1000
"""The number of names that are compared to find the columns by which two files match."""
LABELS = "labels"
"""The name of the only column of a file of labels that does not name it."""


def with_labels(table: Table, reading: ReadOptions) -> Table:
    """Return a table with the columns of the file of labels, whose rows are matched by ids, or by their order.

    Without ``id_column``, the only id that both tables name is taken; tables without ids are matched by their order.

    Raises:
        PredictionsError: If a row has no label, an id is missing or repeated, or the numbers of rows differ.
    """
    if reading.labels is None:
        return table
    other = open_table(reading.labels)
    identifier = reading.id_column or _shared_id(table, other)
    for each in (table, other):
        each.check_columns([identifier], "--id-column")
    columns = _whole(other)
    if not other.has_names and len(columns) == 1:
        columns = {LABELS: next(iter(columns.values()))}
    places = {} if identifier is None else _places(other, columns[identifier], identifier)
    added = [name for name in columns if name != identifier]
    count, may_lack = len(next(iter(columns.values()), ())), reading.missing == "drop"
    has = f"has {count} rows" + (f" below the header {listed(other.names, 3)}" if other.has_names else "")
    if identifier is None and table.rows not in (None, count):
        raise PredictionsError(other.path, f"{has}, but {table.path} has {table.rows}")

    def read(wanted: Sequence[str], numbers: Collection[str], part: range | None) -> Iterator[Batch]:
        inner, stop = [name for name in wanted if name not in added and name != identifier], 0
        texts = [name for name in inner if name not in numbers] + ([] if identifier is None else [identifier])
        for batch in table.batches(
            numbers=[name for name in inner if name in numbers],
            texts=texts if inner or texts else table.names[:1],
            part=part,
        ):
            stop = batch.first_row - 1 + batch.rows
            rows = range(batch.first_row - 1, stop)
            chosen = [
                _row_of(table, other, places, text_of(value), row, may_lack) for value, row in _ids(batch, identifier)
            ]
            if identifier is None and stop > count:
                raise PredictionsError(other.path, f"{has}, but {table.path} has more")
            taken = {
                name: columns[name][rows.start : rows.stop] if identifier is None else _take(columns[name], chosen)
                for name in {*wanted} & {*added}
            }
            yield Batch(batch.first_row, batch.columns | taken)
        if identifier is None and part is None and stop < count:
            raise PredictionsError(other.path, f"{has}, but {table.path} has {stop}")

    how = f"labels of {other.path.name} by {'the order of rows' if identifier is None else quoted(identifier)}"
    names = [name for name in table.names if name not in added] + added
    return replace(table, names=names, read=read, records=None, dialect=", ".join(filter(None, [table.dialect, how])))


def _shared_id(table: Table, other: Table) -> str | None:
    """Return the only id that both tables name; refuse ids by which rows cannot be matched."""
    ids = [[name for name in each.names if is_index(name)] if each.has_names else [] for each in (table, other)]
    shared = [name for name in ids[0] if name in ids[1]]
    if len(shared) == 1 or not all(ids):
        return shared[0] if shared else None
    has = f"has the ids {listed(ids[1])}, and {table.path.name} {listed(ids[0])}"
    raise PredictionsError(other.path, f"{has}: name a column of both by --id-column, or leave out those of the labels")


def _ids(batch: Batch, identifier: str | None) -> Iterator[tuple[Any, int]]:
    values = [] if identifier is None else batch.columns[identifier].to_pylist()
    return zip(values, range(batch.first_row, batch.first_row + len(values)), strict=True)


def _row_of(table: Table, other: Table, places: dict[str, int], name: str, row: int, may_lack: bool) -> int | None:
    if name not in places and may_lack:
        return None
    if name not in places:
        raise PredictionsError(
            table.path,
            f"{other.path} has no row with the id {quoted(name)} (--missing drop leaves such rows out)",
            row=row,
        )
    return places[name]


def _whole(table: Table) -> dict[str, Column]:
    """Return all columns of all rows, as text, so that labels stay as they are."""
    import pyarrow

    parts = list(table.batches(texts=table.names))
    if not parts:
        raise PredictionsError(table.path, "has no rows")
    return {
        name: torch.cat([part.columns[name] for part in parts])
        if isinstance(parts[0].columns[name], Tensor)
        else pyarrow.concat_arrays([_decoded(part.columns[name]) for part in parts])
        for name in table.names
    }


def _decoded(column: Any) -> Any:
    from pyarrow.types import is_dictionary

    return column.dictionary_decode() if is_dictionary(column.type) else column


def _places(table: Table, values: Column, identifier: str) -> dict[str, int]:
    ids = names_of(table.path, values, identifier, 1)
    if row := repeated(ids):
        problem = f"each id must name one row, but {quoted(ids[row].as_py())} appears again"
        raise PredictionsError(table.path, problem, row=row + 1, column=identifier)
    return {name: row for row, name in enumerate(ids.to_pylist())}


def _take(column: Column, rows: Sequence[int | None]) -> Column:
    import pyarrow

    return (
        column[torch.tensor(rows)] if isinstance(column, Tensor) else column.take(pyarrow.array(rows, pyarrow.int64()))
    )


class NamedRows(NamedTuple):
    """All rows of a file, and the columns that may name them."""

    path: Path
    naming: Sequence[tuple[str, ...]]
    """Columns that may name rows together, the likeliest first."""
    columns: Mapping[str, Sequence[Any]]
    """By name, the names of some rows after others, as arrow arrays."""

    def ids(self, names: Sequence[str]) -> "pyarrow.Array":
        """Return the names of rows, joined by spaces if they have several."""
        import pyarrow
        from pyarrow import compute

        columns = [pyarrow.chunked_array(self.columns[name], pyarrow.string()) for name in names]
        joined = columns[0] if len(names) == 1 else compute.binary_join_element_wise(*columns, " ")
        return joined.combine_chunks()


def match_rows(rows: NamedRows, listed_rows: NamedRows) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the columns by whose names rows match those of a list, and the place in the list of each row, or -1.

    Raises:
        PredictionsError: If no names match, a name is repeated, or a row of the list is missing.
    """
    best, chosen = (False, 0, 0), None
    for pair in product(rows.naming, listed_rows.naming):
        if len(pair[0]) == len(pair[1]) and best < (True, len(pair[0]), COMPARED):
            listed_ids = listed_rows.ids(pair[1])
            number = int((places_in(rows.ids(pair[0]).slice(0, COMPARED), listed_ids) >= 0).sum())
            match = (not repeated(listed_ids), len(pair[0]), number) if number else best
            best, chosen = (match, pair) if match > best else (best, chosen)
    if chosen is None:
        example = "".join(f", such as {name_shown(rows.ids(names)[0])}" for names in rows.naming[:1])
        problem = f"has no trial of {listed_rows.path}{example}: name the columns of names with --id-column"
        raise PredictionsError(rows.path, problem)
    ids, listed_ids = rows.ids(chosen[0]), listed_rows.ids(chosen[1])
    for path, names in ((listed_rows.path, listed_ids), (rows.path, ids)):
        if row := repeated(names):
            raise PredictionsError(path, f"{name_shown(names[row])} appears twice", row=row + 1)
    is_missing = places_in(listed_ids, ids) < 0
    if is_missing.any():
        problem = f"has no scores for {is_missing.sum()} trials of {listed_rows.path}"
        raise PredictionsError(rows.path, f"{problem}, such as {name_shown(listed_ids[int(is_missing.argmax())])}")
    return chosen[0], places_in(ids, listed_ids)


def places_in(names: "pyarrow.Array", others: "pyarrow.Array") -> NDArray[np.int32]:
    """Return the place of each name among others, or -1."""
    from pyarrow import compute

    return np.asarray(compute.index_in(names, value_set=others).fill_null(-1), dtype=np.int32)


def repeated(names: "pyarrow.Array") -> int:
    """Return the place of the first name that another one before it equals, or 0."""
    return int((places_in(names, names) != np.arange(len(names))).argmax()) if len(names) else 0


def names_of(path: Path, values: Column, column: str, first_row: int) -> "pyarrow.Array":
    """Return a column of names as text; refuse missing ones."""
    import pyarrow
    from pyarrow import compute

    check_single(path, values, column)
    texts = values if isinstance(values, pyarrow.Array) else pyarrow.array(values)
    texts = compute.utf8_trim_whitespace(_decoded(texts).cast(pyarrow.string()))
    is_missing = compute.fill_null(compute.equal(texts, ""), True)
    if (place := is_missing.index(True).as_py()) >= 0:
        raise PredictionsError(path, "is missing", row=first_row + place, column=column)
    return texts


def name_shown(name: Any) -> str:
    """Return a name for a message."""
    return quoted(name.as_py())[1:-1]
