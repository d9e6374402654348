"""Evaluate a confusion matrix, in memory or in a file."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES
from mpcs_torch.errors import Rule, listed
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.chosen import MetricInputs, choose_metrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.classifier_values import scores_of
from mpcs_torch.evaluation.evaluation import MODEL
from mpcs_torch.evaluation.files.facts import SEPARATOR
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.evaluation.files.tables import to_number, to_text
from mpcs_torch.evaluation.files.words import DECISIONS, LABELS, TOTAL_NAMES, plain
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional.inputs.evaluation_warnings import (
    EvaluationWarning,
    rare_classes,
)
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.metric_entry import MetricEntry

MAX_OF_CELLS = 2**25
"""The maximum number of values (256 MiB) that are computed at once for the pairs of classes of a matrix."""
MAX_SAMPLES = 2**53
"""The maximum sum of all counts: float64 represents all whole numbers up to this one exactly."""


def evaluate_confusion(
    confusion: Tensor,
    class_names: list[str],
    *,
    model: str = MODEL,
    concern: ConcernSpec | ConcernRange | None = None,
    metrics: Sequence[MetricEntry] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate the decisions for independent rows, given only their confusion matrix.

    ``confusion`` is (C, C), int64, with a row for each true class; ``concern`` states the cost of each kind of error.
    ``metrics`` must take decisions; by default, they are all default metrics that do.
    """
    chosen = choose_metrics(class_names, concern, metrics, is_decided=metrics is None)
    layout = SumLayout(chosen)
    concern = chosen.concern
    cells = confusion.nonzero()
    counts = confusion[cells[:, 0], cells[:, 1]].double()
    step = max(1, MAX_OF_CELLS // (4 * len(class_names)))  # a cell has about 4 C sums
    is_whole = len(cells) <= step
    notes = [independence("rows")] if intervals else []
    parts = list[Tensor]()
    for start in range(0, len(cells), step):
        true, predicted = cells[start : start + step].unbind(1)
        bins = Bins(torch.arange(len(true)), len(true))
        rows = Rows(predicted.unsqueeze(1), true, bins.codes)
        numbers = layout.sums(MetricInputs(rows, set()), bins)
        if not is_whole:  # all cells of a step are one unit
            numbers = (counts[start : start + step] @ numbers).unsqueeze(0)
        parts.append(numbers)
    if not is_whole:
        intervals = False
        notes = ["No intervals: the matrix has too many pairs of classes."]
        counts = torch.ones(len(parts), dtype=torch.float64)
    numbers = torch.cat(parts)
    units = layout.units(numbers, None)._replace(counts=counts)
    scores = scores_of(
        UnitValues(layout, numbers, units), confusion=confusion, intervals=intervals
    )
    cautions = list[EvaluationWarning]()
    if concern is not None:
        dangerous = concern.dangerous_pairs()
        cautions += rare_classes(class_names, confusion.sum(1), dangerous)
    over_costs = None
    if chosen.ranges is not None and concern is not None:
        further = concern.costs().shape[1] - len(class_names)
        decided = torch.nn.functional.pad(confusion, (0, further))
        over_costs = OverCosts(chosen.ranges, {model: {"as decided": decided}})
    return Result(
        {model: scores},
        has_concern=concern is not None,
        notes=notes,
        cautions=cautions,
        over_costs=over_costs,
        is_default=chosen.is_default,
    )


def read_confusion(path: Path) -> tuple[list[str], Tensor, str]:
    """Read a confusion matrix with class names in the header and at the start of each row; totals are left out.

    Rows are true classes, unless the first cell of the header marks the rows as predicted classes.

    Returns:
        The class names; the counts, (C, C), int64, with a row for each true class; and a line on how the file was read.

    Raises:
        PredictionsError: If the header is missing, or a count is invalid.
    """
    table = open_table(path)
    if table.counts_from_0:
        raise PredictionsError(path, Rule("table_of_classes"))
    columns_of_texts = [
        map(to_text, values.tolist()) for values in table.read(table.names).columns.values()
    ]
    rows = list(zip(*columns_of_texts, strict=True))
    if not table.has_names or all(to_number(cell) is not None for cell in table.names):
        line = table.names if table.has_names else rows[0]
        raise PredictionsError(path, Rule("header_of_classes", line=line))
    corner, *columns = table.names
    names = [name for name in columns if name.lower() not in TOTAL_NAMES]
    total_columns = [name for name in columns if name.lower() in TOTAL_NAMES]
    by_row = {row[0]: row[1:] for row in rows}
    total_rows = [name for name in by_row if name.lower() in TOTAL_NAMES]
    if not 2 <= len(names) <= MAX_MATRIX_CLASSES:
        raise PredictionsError(
            path, Rule("classes_of_matrix", maximum=MAX_MATRIX_CLASSES, number=len(names))
        )
    if sorted(row[0] for row in rows) != sorted([*names, *total_rows]):
        of_rows = [row[0] for row in rows]
        raise PredictionsError(path, Rule("square", rows=of_rows, columns=columns))
    cells = list[list[int]]()
    for row in [*names, *total_rows]:
        cells.append(
            [
                _count(path, cell, row, name)
                for name, cell in zip(columns, by_row[row], strict=True)
            ]
        )
    counts, of_totals = torch.tensor(cells, dtype=torch.int64).split_with_sizes(
        [len(names), len(total_rows)]
    )
    is_class = torch.tensor([name in names for name in columns])
    inner = counts[:, is_class]
    are_sums = (counts[:, ~is_class] == inner.sum(1, keepdim=True)).all()
    if not are_sums or not (of_totals[:, is_class] == inner.sum(0)).all():
        totals = [*total_columns, *total_rows]
        raise PredictionsError(path, Rule("sums_of_counts", totals=totals))
    total = int(inner.sum())
    if not 0 < total <= MAX_SAMPLES:
        raise PredictionsError(
            path, Rule("counted_samples", maximum=MAX_SAMPLES, number=total)
        )
    is_transposed = _rows_are_predicted(path, corner)
    kinds = "rows true classes, columns predicted"
    if is_transposed:
        kinds = "rows predicted classes, columns true"
        inner = inner.T
    dialect = f" ({table.dialect})" if table.dialect else ""
    how = f"{path.name}{dialect}: {kinds} classes {listed(names)}"
    if total_columns or total_rows:
        how += f"; sums left out: {listed([*{*total_columns, *total_rows}])}"
    return names, inner, how


def _count(path: Path, cell: str, row: str, column: str) -> int:
    number = None if cell.endswith("%") else to_number(cell)
    if number is None or number % 1 or not 0 <= number <= MAX_SAMPLES:
        raise PredictionsError(path, Rule("count", value=cell, label=row), column=column)
    return int(number)


def _rows_are_predicted(path: Path, corner: str) -> bool:
    """Return whether ``corner``, the first cell of the header, marks the rows as predicted classes."""
    words = [
        plain(SEPARATOR.split(part.strip())[0]) for part in re.split(r"[\\/|]", corner)
    ]
    # Rows are named first, and columns last, as in "true / predicted"; both must not be of one kind.
    is_decision = words[0] in DECISIONS
    is_label = words[0] in LABELS and not is_decision
    last_is_decision = words[-1] in DECISIONS
    last_is_label = words[-1] in LABELS and not last_is_decision
    if is_decision and (len(words) == 1 or not last_is_decision):
        return True
    if is_label and (len(words) == 1 or not last_is_label):
        return False
    if corner.lower() in (
        "",
        "class",
        "classes",
        "label",
        "labels",
        "index",
        "name",
    ) or corner.startswith("Unnamed:"):
        return False
    raise PredictionsError(path, Rule("corner", corner=corner))


def score_confusion(
    path: Path,
    concern: ConcernSpec | ConcernRange | None,
    *,
    entries: Sequence[MetricEntry] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate a file with a confusion matrix; see `read_confusion` and `evaluate_confusion`."""
    names, counts, how = read_confusion(path)
    if concern is not None and {*concern.classes} != {*names}:
        raise PredictionsError(
            path, Rule("same_classes_as_concern", classes=concern.classes, names=names)
        )
    if concern is not None:  # sort the classes as the concern does
        order = torch.tensor([names.index(name) for name in concern.classes])
        names = list(concern.classes)
        counts = counts[order][:, order]
    others = [entry.name for entry in entries or () if entry.takes != "decisions"]
    if others:
        raise PredictionsError(path, Rule("no_probabilities_of_counts", metrics=others))
    result = evaluate_confusion(
        counts,
        names,
        model=path.name,
        concern=concern,
        metrics=entries,
        intervals=intervals,
    )
    return replace(result, read=[how])
