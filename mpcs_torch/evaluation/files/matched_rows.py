"""The rows that several files of predictions share, matched by ids or by their order, with labels and groups."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import ids_of_names
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError, values_of
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.reading import NO_GROUP, ReadOptions
from mpcs_torch.evaluation.files.row_ids import RowIds
from mpcs_torch.evaluation.files.tables import Chunk, text_of
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.functional.inputs.evaluation_warnings import hashed
from mpcs_torch.functional.inputs.groups import MAX_REPEATED, Groups


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
        return torch.frombuffer(self._codes, dtype=torch.int64) if self._codes else torch.empty(0, dtype=torch.int64)

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
        reading: Columns of groups, where rows without one are the group "(none)", of clusters and units, of which each
            row must have one, and of weights and frequencies.
        identifier: A column that names each row of every file, which may have another order. Default: rows of all
            files have the same order.
        holds: Whether there are other files, whose columns of groups, if they have them, must be equal.
        alike: Other columns that must be equal in all files, such as ids.
        concern: Says which classes are worse, for the worst row of a unit.
    """

    def __init__(
        self,
        reading: ReadOptions,
        *,
        identifier: str | None = None,
        holds: bool = True,
        alike: Sequence[str] = (),
        concern: ConcernSpec | ConcernRange | None = None,
    ) -> None:
        self._reading, self._holds, self._identifier, self._concern = reading, holds, identifier, concern
        self._named = (reading.cluster, reading.crossed, reading.unit)
        self.columns = {name: GroupColumn(NO_GROUP) for name in (*reading.by, *alike)}
        self.columns |= {name: GroupColumn() for name in self._named if name is not None}
        self.units: DecisionUnits | None = None
        """Those of the file that was read last, if rows are combined."""
        self._labels = GroupColumn()
        self._first: Predictions | None = None
        self._ids: RowIds | None = None
        self._places = torch.empty(0, dtype=torch.int64)
        """Of the rows of the file that is read, among those of the first; by ids."""
        self._numbers = defaultdict[str, list[Tensor]](list)
        """Weights, frequencies and costs of the rows of the first file."""
        self._rows = self._read = 0
        """The number of rows of the first file, and those of the present one that were read."""
        self._is_soft = False

    @property
    def labels(self) -> Tensor:
        """``(N,)``, int64: the label of each row; empty if they are soft."""
        return self._labels.codes

    def add(self, predictions: Predictions, chunk: Chunk) -> tuple[Tensor, dict[str, Tensor]]:
        """Hold or check the next rows of a file; return the place of each row, and the code of its group by column."""
        start, self._read = self._read, self._read + len(chunk.scores)
        self._first = self._first or predictions
        if start == 0 and self._identifier is not None:
            ids = RowIds.of(predictions.table, self._identifier).check_different()
            self._ids = self._ids or ids
            self._places = torch.from_numpy(ids.all_among(self._ids)).long()
            self._ids.all_among(ids)
        if predictions is self._first:
            codes = {name: self._codes(chunk, name, is_known=False) for name in self.columns}
            for name, of_rows in codes.items():
                if self._holds:
                    self.columns[name].add(of_rows)
            if self._holds and not chunk.is_soft:
                self._labels.add(chunk.target)
            self._rows, self._is_soft = self._read, chunk.is_soft
            return torch.arange(start, self._read), codes
        if self._identifier is None and self._read > self._rows:
            problem = f"has more rows than {self._first.path}, which has {self._rows}"
            raise PredictionsError(predictions.path, problem)
        rows = torch.arange(start, self._read) if self._identifier is None else self._places[start : self._read]
        self._check(self._first, predictions, chunk, rows)
        return rows, {name: column.codes[rows] for name, column in self.columns.items()}

    def rows_of(
        self, predictions: Predictions, part: range | None = None, advance: Advance = lambda _: None
    ) -> Iterator[Rows]:
        """Yield the rows of a file, or of a part, as they are evaluated.

        Units of decision, whose rows may be anywhere in the file, need all of its scores in memory.
        """
        rows, is_clustered = self._read_rows(predictions, part, advance), self._reading.cluster is not None
        if self._reading.unit is not None:
            rows = iter([self._in_units(parts, predictions)] if (parts := list(rows)) else [])
        for each in rows:
            yield from each.repeated(is_clustered=is_clustered)

    def _read_rows(self, predictions: Predictions, part: range | None, advance: Advance) -> Iterator[Rows]:
        reading = self._reading
        columns = [name for name in (*reading.by, reading.unit) if name is not None]
        for chunk in predictions.chunks(part):
            places, codes = self.add(predictions, chunk)
            weights, costs, frequencies = self._numbers_of_rows(chunk, places)
            if reading.cluster is not None:
                shared = [name for name in (reading.cluster, reading.crossed) if name is not None]
                of_columns = [self.columns[name].ids[codes[name]] for name in shared]
                ids = of_columns[0] if reading.crossed is None else hashed(hashed(of_columns[0]) + of_columns[1])
            elif reading.frequency is not None:
                every = torch.cat(self._numbers["frequency"]).squeeze(1)
                ids = (every.cumsum(0) - every)[places].long()
            else:
                ids = places + (0 if part is None else part.start)
            groups = {column: codes[column] for column in columns}
            yield Rows(chunk.scores, chunk.target, ids, groups, weights, costs, frequencies)
            advance(len(chunk.scores))

    def _in_units(self, parts: Sequence[Rows], predictions: Predictions) -> Rows:
        rows, unit = Rows.joined(parts), self._reading.unit
        assert unit is not None
        groups, size, how = dict(rows.groups), len(predictions.class_names), self._reading.combine
        codes = groups[unit] if unit in self._reading.by else groups.pop(unit)
        of_rows = Groups(self.columns[unit].names, codes)
        is_clustered = self._reading.cluster is not None
        with values_of(predictions.path):
            self.units = DecisionUnits.of(of_rows, how, self._concern, size, len(codes), unit)
            return self.units.combined(rows._replace(groups=groups), size, is_clustered=is_clustered)

    def _numbers_of_rows(self, chunk: Chunk, rows: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the weights (n,), costs (n, C) and frequencies (n,) of the next rows: those of the first file."""
        reading, classes = self._reading, 0 if self._first is None else len(self._first.class_names)
        weights = self._numbers_of(chunk, "weight", reading.weight, rows, "at least 0", 0)
        rule = "a whole number of at least 1"
        frequencies = self._numbers_of(chunk, "frequency", reading.frequency, rows, rule, 1)
        costs = self._numbers_of(chunk, "cost", reading.cost_columns, rows, "a finite number", -torch.inf)
        if costs is not None and costs.shape[1] != classes:
            problem = f"must have a cost for each of the {classes} classes, but has {costs.shape[1]}"
            raise chunk.others.error(problem, 0, reading.cost_columns[0])
        if sum(each.sum().item() for each in self._numbers["frequency"]) > MAX_REPEATED:
            problem = f"frequencies must sum to at most {MAX_REPEATED}, but sum to more"
            raise chunk.others.error(problem, 0, reading.frequency)
        of_rows = (None if each is None else each.squeeze(1) for each in (weights, frequencies))
        weights, frequencies = of_rows
        return weights, costs, None if frequencies is None else frequencies.long()

    def _numbers_of(
        self, chunk: Chunk, kind: str, given: str | Sequence[str] | None, rows: Tensor, rule: str, lowest: float
    ) -> Tensor | None:
        columns = [given] if isinstance(given, str) else list(given or ())
        if not columns:
            return None
        if columns[0] not in chunk.others.columns:
            return torch.cat(self._numbers[kind])[rows]
        numbers = chunk.others.matrix(columns).double()
        bad = ~((numbers >= lowest) & numbers.isfinite()) | ((kind == "frequency") & (numbers % 1 != 0))
        if bad.any():
            place, column = bad.nonzero()[0].tolist()
            name = columns[min(column, len(columns) - 1)]
            raise chunk.others.error(f"a {kind} must be {rule}, but is {numbers[place, column]:g}", place, name)
        self._numbers[kind] += [numbers] if self._holds or kind == "frequency" else []
        return numbers

    def end(self, predictions: Predictions) -> None:
        """Refuse a file that had fewer rows than the first one."""
        if self._first is not None and self._read < self._rows:
            problem = f"has {self._read} rows, but {self._first.path} has {self._rows}"
            raise PredictionsError(predictions.path, problem)
        self._read = 0

    def _check(self, first: Predictions, predictions: Predictions, chunk: Chunk, rows: Tensor) -> None:
        """Refuse rows with other labels or groups than those of the first file."""
        path, in_order = predictions.path, "rows are matched in order (--id-column COLUMN matches them by ids)"
        how = in_order if self._identifier is None else "rows are matched by their ids"
        if chunk.is_soft != self._is_soft:
            kinds = ("one class", "soft labels")
            problem = f"has {kinds[chunk.is_soft]} for each row, but {first.path} has {kinds[self._is_soft]}"
            raise PredictionsError(path, problem)
        shared = [name for name in self.columns if name in chunk.others.columns]
        compared = {name: (self._codes(chunk, name, is_known=True), self.columns[name]) for name in shared}
        if not chunk.is_soft:
            compared = {"": (chunk.target, self._labels), **compared}
        for name, (codes, column) in compared.items():
            differs = codes != column.codes[rows]
            if differs.any():
                place = int(differs.nonzero()[0])
                names = column.names if name else predictions.class_names
                expected = quoted(names[int(column.codes[rows[place]])])
                value = quoted(text_of(chunk.others.columns[name][place]) if name else names[int(codes[place])])
                what = "must" if name else "the label must"
                problem = f"{what} be {expected} as in {first.path}, but is {value}: {how}"
                raise PredictionsError(path, problem, row=chunk.first_row + place, column=name or None)

    def _codes(self, chunk: Chunk, name: str, *, is_known: bool) -> Tensor:
        code_of = partial(self.columns[name].code_of, is_known=is_known)
        kind = "unit" if name == self._reading.unit else "cluster"
        return chunk.others.codes(name, code_of, f"must name a {kind}")
