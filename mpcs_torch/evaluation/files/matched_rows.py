"""Match the rows of several files of predictions by ids or in order, and check that labels and groups agree."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.predictions import PredictedRows, Predictions
from mpcs_torch.evaluation.files.read_options import (
    NO_GROUP,
    Advance,
    PredictionsError,
    ReadOptions,
    naming_file,
)
from mpcs_torch.evaluation.files.row_ids import RowIds, check_as_many
from mpcs_torch.evaluation.files.tables import Argument, ReadColumns
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.unit_sums import ids_of_names
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.functional.inputs.evaluation_warnings import hashed
from mpcs_torch.functional.inputs.groups import (
    Groups,
    costs_if_wrong,
    row_costs,
    row_frequencies,
    row_weights,
)

MAX_VALUES = 10_000_000
"""The maximum total number of probabilities of all models: 40 MB in memory, and 54 MB in an HTML page."""


class MatchedRows:
    """The rows of the first file of predictions, to which the rows of all other files are matched.

    Rows are matched by the option ``id_column``, or else in order. Matched rows must have equal labels, and equal texts
    in all columns that both files read as text. A row whose cluster or unit is missing is refused.

    Args:
        first: The first file. Its groups, clusters, units, weights, frequencies and costs are used for all files.
        is_alone: Whether there are no other files.
        concern: The costs that decide which row of a unit (such as a patient) is the worst.
    """

    def __init__(
        self,
        first: Predictions,
        *,
        is_alone: bool,
        concern: ConcernSpec | ConcernRange | None = None,
    ) -> None:
        options = first.options
        self._first = first
        self._concern = concern
        self._identifier = None if is_alone else options.id_column
        alike: list[str] = []
        if not is_alone:  # what the matching rows of the other files must have, too
            alike = [name for name in first.texts if name not in options.columns]
        read = first.rows()
        self._scores = read.scores
        self._target = read.target
        of_patients = [
            name
            for name in (options.cluster, options.crossed, options.unit)
            if name is not None
        ]
        self.columns: dict[str, Groups] = {}
        """The groups, clusters and units of the rows, and the texts that all files must share, by column."""
        for name in dict.fromkeys([*options.by, *alike, *of_patients]):
            # Rows without a group are a group; but a row without a patient is refused.
            gap = None if name in of_patients else NO_GROUP
            self.columns[name] = read.others.groups(name, gap)
        self.units: DecisionUnits | None = None
        """The units, such as patients, of the last file given to `rows`; None if rows are not combined."""
        self._row_ids = None if self._identifier is None else self._row_names(first)
        number = len(read.target)
        classes = len(first.class_names)
        self._numbers = dict[str, Tensor]()
        """The weights, frequencies and costs of the rows, as far as columns have them."""
        for argument, column, check in (
            ("weights", options.weight, row_weights),
            ("frequencies", options.frequency, row_frequencies),
        ):
            if column is not None:
                values = read.others.matrix([column]).squeeze(1)
                with read.others.naming({argument: Argument([column])}):
                    self._numbers[argument] = check(values, number)
        costs = costs_of_rows(read.others, options, classes)
        if costs is not None:
            with read.others.naming({"costs": columns_of_costs(options, classes)}):
                self._numbers["costs"] = row_costs(costs, self._target, (number, classes))
        self._ids = self._independent_ids(number)

    def rows(self, predictions: Predictions) -> Rows:
        """Return the rows of ``predictions`` for evaluation, in the order of the first file's rows."""
        scores = self._scores
        target = self._target
        if predictions is not self._first:
            read = predictions.rows()
            order = self._order(predictions, len(read.target))
            self._check(predictions, read, order)
            scores = read.scores[order]
            target = read.target[order]
        groups = {name: self.columns[name].codes for name in self._first.options.by}
        rows = Rows(scores, target, self._ids, groups, **self._numbers)
        return self._in_units(rows, predictions)

    def _independent_ids(self, rows: int) -> Tensor:
        """Return ids (N,), equal for all rows of a cluster; for crossed clusters, (N, 3), as in `Rows.ids`."""
        options = self._first.options
        ids = [
            ids_of_names(self.columns[name].names)[self.columns[name].codes]
            for name in (options.cluster, options.crossed)
            if name is not None
        ]
        if len(ids) == 2:
            of_pairs = hashed(hashed(ids[0]) + ids[1])
            return torch.stack([*ids, of_pairs], dim=1)
        if ids:
            return ids[0]
        frequencies = self._numbers.get("frequencies")
        if frequencies is not None:
            # The first of the ids that the copies of a row will get.
            return frequencies.cumsum(0) - frequencies
        return torch.arange(rows)

    def _in_units(self, rows: Rows, predictions: Predictions) -> Rows:
        """Combine the rows of each unit of decision, if there are units."""
        options = self._first.options
        size = len(predictions.class_names)
        unit = options.unit
        is_clustered = options.cluster is not None
        if unit is None:
            return rows
        with naming_file(predictions.path):
            self.units = DecisionUnits.of(
                self.columns[unit],
                options.combine,
                self._concern,
                size,
                len(rows.ids),
                unit,
            )
            return self.units.combined(rows, size, is_clustered=is_clustered)

    def _row_names(self, predictions: Predictions) -> RowIds:
        assert self._identifier is not None
        read = predictions.table.read([self._identifier])
        return RowIds.of(read, [self._identifier]).check_different()

    def _order(self, predictions: Predictions, rows: int) -> Tensor:
        """Return indices, int64 (N,): for each row of the first file, that of the same row in ``predictions``."""
        if self._row_ids is not None:
            return self._row_ids.order_among(self._row_names(predictions))
        check_as_many(predictions.path, rows, self._first.path, len(self._target))
        return torch.arange(rows)

    def _check(self, predictions: Predictions, read: PredictedRows, order: Tensor) -> None:
        """Raise an error if labels or groups in ``read`` differ from those of the matching rows of the first file."""
        how = Rule("matched_in_order" if self._identifier is None else "matched_by_ids")
        is_soft = self._target.ndim == 2
        classes = predictions.class_names
        if read.is_soft != is_soft:
            code = "classes_as_first" if is_soft else "soft_labels_as_first"
            raise PredictionsError(predictions.path, Rule(code, first=self._first.path))
        compared = dict[str, tuple[Groups, Groups]]()
        if not is_soft:
            compared[""] = Groups(classes, read.target), Groups(classes, self._target)
        for name, expected in self.columns.items():
            if name in read.others.columns:
                compared[name] = (read.others.groups(name, NO_GROUP), expected)
        for name, (here, expected) in compared.items():
            # The codes of the first file for the names of this one; -1 for a name that the first lacks.
            code_of = {group: code for code, group in enumerate(expected.names)}
            codes = torch.tensor([code_of.get(group, -1) for group in here.names])
            seen = codes[here.codes]
            # The codes that the first file has, in the order of the rows of this one.
            in_file = torch.empty_like(expected.codes).scatter(0, order, expected.codes)
            differs = seen != in_file
            if differs.any():
                place = int(differs.nonzero()[0])
                rule = Rule(
                    "group_as_first" if name else "label_as_first",
                    first=self._first.path,
                    expected=expected.names[in_file[place]],
                    value=here.names[here.codes[place]],
                    how=how,
                )
                raise read.others.error(rule, place, name or None)


def costs_of_rows(read: ReadColumns, options: ReadOptions, classes: int) -> Tensor | None:
    """Read the costs of each decision, (N, C), or those by true class, (N, C, C); None if no columns have them."""
    if not options.cost_columns:
        return None
    costs = read.matrix(options.cost_columns).double()
    if costs.shape[1] == classes**2 and not options.costs_if_wrong:
        return costs.reshape(-1, classes, classes)
    if costs.shape[1] != classes:
        raise read.error(
            Rule("cost_for_each_class", classes=classes, number=costs.shape[1]),
            0,
            options.cost_columns[0],
        )
    with read.naming({"amounts": Argument(options.cost_columns)}):
        return costs_if_wrong(costs) if options.costs_if_wrong else costs


def columns_of_costs(options: ReadOptions, classes: int) -> Argument:
    """Return the column of each cost that `costs_of_rows` reads, for errors; amounts if wrong are in C costs each."""
    columns = [*options.cost_columns]
    return Argument(columns * classes if options.costs_if_wrong else columns)


class HeldRows(NamedTuple):
    """The N rows of one or more files, in memory: their labels, groups, and the probabilities of each model."""

    class_names: list[str]
    probs: dict[str, Tensor]
    """The probabilities of each model, (N, C), float32."""
    target: Tensor
    """(N,), int64: the labels."""
    groups: dict[str, Groups]
    """The groups of the rows, by grouping column."""


def hold_rows(
    opened: Mapping[str, Predictions], advance: Advance = lambda _: None
) -> HeldRows:
    """Read all rows of the files in ``opened``, by model name (see `open_models`). The files must have the same rows.

    Raises:
        PredictionsError: If a file has soft labels or decisions, or there are more than `MAX_VALUES` probabilities.
    """
    first = next(iter(opened.values()))
    matched = MatchedRows(first, is_alone=len(opened) == 1)
    probs: dict[str, Tensor] = {}
    for name, predictions in opened.items():
        if predictions.decides:
            raise PredictionsError(predictions.path, Rule("probabilities_to_draw"))
        rows = matched.rows(predictions)
        if rows.target.ndim == 2:
            raise PredictionsError(predictions.path, Rule("classes_to_draw"))
        if len(opened) * rows.probs.numel() > MAX_VALUES:
            raise PredictionsError(
                predictions.path, Rule("probabilities_at_most", maximum=MAX_VALUES)
            )
        probs[name] = rows.probs.float()
        advance(len(rows.ids))
    return HeldRows(first.class_names, probs, rows.target, matched.columns)
