"""The rows that several files of predictions share, matched by ids or by their order, with labels and groups."""

from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import ids_of_names
from mpcs_torch.evaluation.files.chunks import Chunk, PredictionsError
from mpcs_torch.evaluation.files.reading import NO_GROUP
from mpcs_torch.evaluation.files.tables import codes_of, text_of

NAMED = 3
"""The most missing ids that an error names."""


class RowIds:
    """The place of each id of a column among the rows of the first file, about 150 bytes for a row."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._places = dict[str, int]()
        self._seen = bytearray()
        """Of each row of the first file, whether the other file had it."""

    def hold(self, path: Path, chunk: Chunk) -> None:
        """Add the next rows of the first file; refuse an id that is missing or repeated."""
        for row, name in enumerate(self._ids(path, chunk)):
            if name in self._places:
                raise PredictionsError(path, _repeated(name), row=chunk.first_row + row, column=self._column)
            self._places[name] = len(self._places)

    def places(self, path: Path, chunk: Chunk, first: str) -> Tensor:
        """Return the place of the next rows of another file: ``(n,)``, int64; refuse such ids, and unknown ones."""
        if chunk.first_row == 1:
            self._seen = bytearray(len(self._places))
        places = []
        for row, name in enumerate(self._ids(path, chunk)):
            place = self._places.get(name)
            if place is None or self._seen[place]:
                problem = f"{first} has no row with the id {quoted(name)}" if place is None else _repeated(name)
                raise PredictionsError(path, problem, row=chunk.first_row + row, column=self._column)
            self._seen[place] = 1
            places.append(place)
        return torch.tensor(places, dtype=torch.int64)

    def check_all_seen(self, path: Path, first: str) -> None:
        """Refuse a file that lacks ids of the first one."""
        missing = self._seen.count(0)
        if missing:
            names = [name for name, place in self._places.items() if not self._seen[place]][:NAMED]
            more = f" and {missing - len(names)} more" if missing > len(names) else ""
            raise PredictionsError(path, f"lacks {missing} rows of {first}: those with the ids {quoted(names)}{more}")

    def _ids(self, path: Path, chunk: Chunk) -> list[str]:
        names = [text_of(value) for value in chunk.texts[self._column].to_pylist()]
        if not all(names):
            row = chunk.first_row + names.index("")
            raise PredictionsError(path, "must be the id of the row, but is missing", row=row, column=self._column)
        return names


def _repeated(name: str) -> str:
    return f"each id must name one row, but {quoted(name)} appears again"


class GroupColumn:
    """A column that says to which group each row belongs: the names of the groups, and if held 8 bytes for a row.

    Args:
        missing: The name of the group of rows without one. Default: each row must have one.
    """

    def __init__(self, missing: str = "") -> None:
        self._codes, self._by_name, self._missing = array("q"), dict[str, int](), missing
        self._ids = torch.empty(0, dtype=torch.int64)

    @property
    def names(self) -> list[str]:
        """The groups, in the order in which they occur."""
        return list(self._by_name)

    @property
    def ids(self) -> Tensor:
        """(groups,), int64: an identifier of each group, the same in every process."""
        if len(self._ids) < len(self._by_name):
            self._ids = torch.cat([self._ids, ids_of_names(self.names[len(self._ids) :])])
        return self._ids

    @property
    def codes(self) -> Tensor:
        """``(N,)``, int64: the place of the group of each row in `names`."""
        return torch.frombuffer(self._codes, dtype=torch.int64)

    def add(self, codes: Tensor) -> None:
        """Add the codes of the next rows."""
        self._codes.frombytes(codes.numpy().tobytes())

    def code_of(self, value: Any, *, is_known: bool) -> int | None:
        """Return the code of a group, or None for a missing value; a new group gets a code, or -1 if all are known."""
        name = text_of(value) or self._missing
        if not name:
            return None
        return self._by_name.get(name, -1) if is_known else self._by_name.setdefault(name, len(self._by_name))


class MatchedRows:
    """The labels and groups of the rows of the first file, which the rows of the others must have too.

    Args:
        by: Columns of groups; rows without one are the group "(none)".
        cluster: A column that says which rows are not independent; each row must have a value.
        identifier: A column that names each row of every file, which may have another order. Default: rows of all
            files have the same order.
        holds: Whether there are other files, whose columns of groups, if they have them, must be equal.
        alike: Other columns that must be equal in all files, such as ids.
    """

    def __init__(
        self,
        by: Sequence[str],
        *,
        cluster: str | None = None,
        identifier: str | None = None,
        holds: bool = True,
        alike: Sequence[str] = (),
    ) -> None:
        self._holds = holds
        self.columns = {name: GroupColumn(NO_GROUP if name != cluster else "") for name in (*by, *alike)}
        self.columns |= {} if cluster is None else {cluster: GroupColumn()}
        self._ids = None if identifier is None else RowIds(identifier)
        self._labels = array("q")
        self._first: Path | None = None
        self._rows = self._place = 0
        self._is_soft = False

    @property
    def labels(self) -> Tensor:
        """``(N,)``, int64: the label of each row; empty if they are soft."""
        return torch.frombuffer(self._labels, dtype=torch.int64) if self._labels else torch.empty(0, dtype=torch.int64)

    def add(self, path: Path, class_names: Sequence[str], chunk: Chunk) -> tuple[Tensor, dict[str, Tensor]]:
        """Hold or check the next rows of a file; return the place of each row, and the code of its group by column."""
        self._first = self._first or path
        if path == self._first:
            if self._ids is not None:
                self._ids.hold(path, chunk)
            codes = {name: self._codes(path, chunk, name, is_known=False) for name in self.columns}
            for name, of_rows in codes.items():
                if self._holds:
                    self.columns[name].add(of_rows)
            if self._holds and not chunk.is_soft:
                self._labels.frombytes(chunk.target.numpy().tobytes())
            places = torch.arange(self._rows, self._rows + len(chunk.scores))
            self._rows, self._is_soft = self._rows + len(chunk.scores), chunk.is_soft
            return places, codes
        stop = self._place + len(chunk.scores)
        if self._ids is not None:
            rows = self._ids.places(path, chunk, str(self._first))
        elif stop > self._rows:
            raise PredictionsError(path, f"has more rows than {self._first}, which has {self._rows}")
        else:
            rows = torch.arange(self._place, stop)
        self._check(path, class_names, chunk, rows)
        self._place = stop
        return rows, {name: column.codes[rows] for name, column in self.columns.items()}

    def end(self, path: Path) -> None:
        """Refuse a file that had fewer rows than the first one."""
        if self._ids is not None and path != self._first:
            self._ids.check_all_seen(path, str(self._first))
        elif path != self._first and self._place < self._rows:
            raise PredictionsError(path, f"has {self._place} rows, but {self._first} has {self._rows}")
        self._place = 0

    def _check(self, path: Path, class_names: Sequence[str], chunk: Chunk, rows: Tensor) -> None:
        if chunk.is_soft != self._is_soft:
            kinds = ("one class", "soft labels")
            problem = f"has {kinds[chunk.is_soft]} for each row, but {self._first} has {kinds[self._is_soft]}"
            raise PredictionsError(path, problem)
        if not chunk.is_soft:
            expected_labels = self.labels[rows]
            differs = chunk.target != expected_labels
            if differs.any():
                place = int(differs.nonzero()[0])
                how = "rows are matched in order (--id-column COLUMN matches them by ids)"
                how = how if self._ids is None else "rows are matched by their ids"
                label, first = (quoted(class_names[int(labels[place])]) for labels in (chunk.target, expected_labels))
                problem = f"the label must be {first} as in {self._first}, but is {label}: {how}"
                raise PredictionsError(path, problem, row=chunk.first_row + place)
        for name, column in self.columns.items():
            if name in chunk.texts:
                codes, expected = self._codes(path, chunk, name, is_known=True), column.codes[rows]
                if not codes.equal(expected):
                    place = int((codes != expected).nonzero()[0])
                    group = quoted(column.names[int(expected[place])])
                    value = quoted(text_of(chunk.texts[name][place]))
                    how = "rows are matched in order (--id-column COLUMN matches them by ids)"
                    problem = f"must be {group} as in {self._first}, but is {value}: {how}"
                    raise PredictionsError(path, problem, row=chunk.first_row + place, column=name)

    def _codes(self, path: Path, chunk: Chunk, name: str, *, is_known: bool) -> Tensor:
        code_of = partial(self.columns[name].code_of, is_known=is_known)
        return codes_of(path, chunk.texts[name], name, chunk.first_row, code_of, "must name a cluster")
