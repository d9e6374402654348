"""The ids of the rows of files, by which rows of several files are matched; or else in order."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import Rule, shown
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import FileTable, ReadColumns
from mpcs_torch.evaluation.files.words import IDS, is_index, is_person, named_as

if TYPE_CHECKING:
    import pyarrow

Ids = tuple[str, ...]
"""Columns whose texts, joined, name the rows."""
PAIR = ("enrollment", "test")
"""The usual names of the two columns that, together, name a trial."""
MAX_SINGLES, MAX_PAIRED = 30, 10
"""The numbers of columns that may name rows alone and, without names, with another: each is compared with each."""


class RowIds(NamedTuple):
    """The ids of a file's rows: the texts of one column, or of several columns joined by spaces."""

    path: Path
    ids: "pyarrow.Array"
    """(N,) texts, none of them missing."""
    column: str | None = None
    """The column of the ids, for error messages; None if there are several."""
    has_rows: bool = True
    """Whether there is one id for each row of the file, in the order of the rows."""

    @classmethod
    def of(cls, read: ReadColumns, names: Sequence[str]) -> Self:
        """Make the id of each row by joining the texts in the columns ``names``; a missing text is an error."""
        from pyarrow import compute

        parts = []
        for name in names:
            texts = compute.utf8_trim_whitespace(read.texts(name))
            if texts.null_count:
                place = texts.is_null().index(True).as_py()
                raise read.error(Rule("names_row"), place, name)
            parts.append(texts)
        joined = (
            parts[0] if len(parts) == 1 else compute.binary_join_element_wise(*parts, " ")
        )
        return cls(read.path, joined, names[0] if len(names) == 1 else None)

    def repeated(self) -> int:
        """Return the index of the first id that is equal to an earlier id; 0 if all ids differ."""
        is_later = self.among(self) != np.arange(len(self.ids))
        return int(is_later.argmax()) if len(is_later) else 0

    def check_different(self, hint: Rule | str = "") -> Self:
        """Return these ids; raise an error that ends in the ``hint`` if several rows share an id."""
        if place := self.repeated():
            rule = Rule("different_ids", id=self.ids[place].as_py(), hint=hint)
            row = place + 1 if self.has_rows else None
            raise PredictionsError(self.path, rule, row=row, column=self.column)
        return self

    def among(self, others: "RowIds") -> NDArray[np.int32]:
        """For each id here, return its index in ``others``: int32 (N,), or -1 if ``others`` lacks it."""
        from pyarrow import compute

        return np.array(
            compute.index_in(self.ids, value_set=others.ids).fill_null(-1), dtype=np.int32
        )

    def order_among(self, others: "RowIds") -> Tensor:
        """For each id here, return its index in ``others``, int64 (N,); both must have the same ids."""
        others.all_among(self)
        return torch.from_numpy(self.all_among(others)).long()

    def all_among(self, others: "RowIds", hint: Rule | str = "") -> NDArray[np.int32]:
        """For each id here, return its index in ``others``: int32 (N,); raise an error if ``others`` lacks an id."""
        places = self.among(others)
        if number := int((places < 0).sum()):
            place = int((places < 0).argmax())
            where: Rule | str = ""
            if self.column is not None:
                column = shown(self.column.removeprefix("column "))
                where = Rule("in_row_of_column", row=place + 1, column=column)
            elif self.has_rows:
                where = Rule("in_row", row=place + 1)
            rows = Rule("one_row") if number == 1 else Rule("several_rows", number=number)
            rule = Rule(
                "rows_of_file",
                rows=rows,
                other=self.path,
                id=self.ids[place].as_py(),
                where=where,
                hint=hint,
            )
            raise PredictionsError(others.path, rule)
        return places


def check_as_many(
    path: Path, rows: int, other: Path, others: int, note: Rule | str = ""
) -> None:
    """Raise an error if the file ``path`` has not as many rows as the file ``other``; ``note`` is about its rows."""
    if rows != others:
        raise PredictionsError(
            path, Rule("as_many_rows", other=other, rows=rows, note=note, others=others)
        )


def shared_ids(tables: Sequence[FileTable]) -> list[str]:
    """Return the columns that all ``tables`` have with usual names of ids or persons: ``filename``, ``patient``."""
    ids = [
        [name for name in table.names if is_index(name) or is_person(name)]
        for table in tables
        if table.has_names
    ]
    if len(ids) < len(tables):
        return []
    shared = set(ids[0]).intersection(*ids)
    return [name for name in ids[0] if name in shared]


def shared_keys(table: FileTable, other: FileTable, labels: Sequence[str]) -> list[Ids]:
    """Return the columns of both tables, but ``labels``, that have the same values, each of them once."""
    if not (table.has_names and other.has_names):
        return []
    shared = [name for name in table.names if name in other.names and name not in labels]
    shared = shared[:MAX_SINGLES]
    keys: list[Ids] = []
    here = table.read(shared)
    there = other.read(shared)
    for name in shared:
        with suppress(PredictionsError):  # a row has no name
            ids = RowIds.of(here, [name])
            others = RowIds.of(there, [name])
            is_key = not ids.repeated() and not others.repeated()
            if (
                is_key
                and len(ids.ids) == len(others.ids)
                and (ids.among(others) >= 0).all()
            ):
                keys.append((name,))
    return keys


def trial_ids(
    table: FileTable,
    used: Collection[str],
    options: ReadOptions,
    *,
    is_matched: bool = False,
) -> list[Ids]:
    """Return sets of columns, the most likely first, that may name the trials; the columns ``used`` do not.

    With ``is_matched``, the names must be those of another file.
    """
    given = [] if options.id_column is None else options.id_column.split(",")
    if given and (set(given) <= set(table.names) or not is_matched):
        table.check_columns(given, "--id-column")
        return [tuple(given)]
    others = [name for name in table.names if name not in used]
    known: list[Ids] = [names for names in (("trial",), PAIR) if set(names) <= set(others)]
    usual: list[Ids] = [(name,) for name in named_as(others, IDS)]
    # Of several columns that are called ids, the other file tells which one is meant.
    if not known and (len(usual) == 1 or is_matched):
        known = usual
    if table.has_names and (known or not is_matched):
        return known
    singles: list[Ids] = [(name,) for name in others[:MAX_SINGLES]]
    pairs = list(combinations(others[:MAX_PAIRED], 2))
    if is_matched:
        return [*pairs, *singles]
    if len(pairs) == 1:
        # Of two columns without names, the first may name the trials, or both together.
        return [*singles[:1], *pairs]
    return singles
