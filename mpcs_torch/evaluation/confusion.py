"""Evaluate decisions that a confusion matrix counts, in memory or in a file."""

import csv
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.rules import MAX_MATRIX_CLASSES
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.chosen import choose_metrics, in_order
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.evaluation import INDEPENDENT, MODEL
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns, lines_of, reading
from mpcs_torch.evaluation.model_sums import SumLayout
from mpcs_torch.evaluation.ranges import Counted, OverCosts
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.values import scores_of
from mpcs_torch.functional.inputs.cautions import rare_classes
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.by_name import ENTRIES, MetricEntry

MOST_OF_CELLS = 2**25
"""The most numbers (256 MiB) that are kept of the pairs of classes of a confusion matrix."""
MOST_SAMPLES = 2**53
"""Of all pairs together: whole numbers of float64 are exact up to here."""


def evaluate_confusion(
    confusion: Tensor,
    class_names: list[str],
    *,
    model: str = MODEL,
    concern: ConcernSpec | ConcernRange | None = None,
    metrics: Sequence[MetricEntry] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate the decisions of independent rows that a confusion matrix counts.

    Args:
        confusion: ``(C, C)``, int64, rows true classes.
        class_names: C names.
        model: The name of the model.
        concern: Which errors matter.
        metrics: Entries of the register that take decisions. Default: all of them.
        intervals: Whether values get intervals.
    """
    if metrics is None:
        of_decisions = [entry for entry in ENTRIES if entry.takes == "decisions" and not entry.is_of_referrals]
        metrics = in_order([entry for entry in of_decisions if entry.is_default], has_concern=concern is not None)
    chosen = choose_metrics(len(class_names), concern, metrics)
    layout, pairs, concern = SumLayout(chosen), confusion.nonzero(), chosen.concern
    counts, parts = confusion[pairs[:, 0], pairs[:, 1]].double(), list[Tensor]()
    step = max(1, MOST_OF_CELLS // (4 * len(class_names)))  # about so many sums for each
    for start in range(0, len(pairs), step):
        true, predicted = pairs[start : start + step].unbind(1)
        bins = Bins(torch.arange(len(true)), len(true))
        numbers = layout.sums_of({"decisions": predicted}, true, predicted != true, bins)
        weights = counts[start : start + step]
        parts.append(numbers if len(pairs) <= step else (weights @ numbers).unsqueeze(0))
    notes = [INDEPENDENT] if intervals else []
    if len(parts) > 1:
        counts, notes = torch.ones(len(parts), dtype=torch.float64), ["No intervals: too many pairs of classes occur."]
    numbers, intervals = torch.cat(parts), intervals and len(parts) == 1
    units = layout.units(numbers, None)._replace(counts=counts)
    scores = scores_of(layout, numbers, units, class_names, {}, confusion=confusion, intervals=intervals)
    cautions = [] if concern is None else rare_classes(class_names, confusion.sum(1), concern.dangerous_pairs())
    over_costs = None
    if chosen.ranges is not None and concern is not None:
        further = concern.costs().shape[1] - len(class_names)
        counted = Counted({"as decided": torch.nn.functional.pad(confusion, (0, further))}, None)
        over_costs = OverCosts(chosen.ranges, {model: counted})
    has_concern = concern is not None
    return Result({model: scores}, (), (), has_concern, notes, cautions, over_costs)


def read_confusion(path: Path) -> tuple[list[str], Tensor]:
    """Read a matrix: the predicted classes in the header, the true class first in each row, both in the same order.

    Returns:
        The classes, and the number of samples of each pair of them: int64 (C, C), rows true classes.
    """
    with reading(path), path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(lines_of(file, path)) if row] or [[]]
    names = header[1:]
    check_columns(path, len(header))
    if len(names) < 2 or len(set(names)) < len(names):
        rule = "must begin with a header of an empty cell and at least two class names that differ"
        raise PredictionsError(path, f"{rule}, but begins with {quoted(header)}")
    if len(names) > MAX_MATRIX_CLASSES:
        raise PredictionsError(path, f"must have at most {MAX_MATRIX_CLASSES} classes, but has {len(names)}")
    given = [row[0] for row in rows]
    if given != names:
        problem = f"must have a row for each class in the order of the header, but has {quoted(given)}"
        raise PredictionsError(path, problem)
    counts = list[list[int]]()
    for number, (_, *cells) in enumerate(rows, start=1):
        if len(cells) != len(names):
            raise PredictionsError(path, f"must have {len(names)} counts, but has {len(cells)}", row=number)
        for name, cell in zip(names, cells, strict=True):
            if not cell.isdecimal() or len(cell) > 16:
                problem = f"must be a whole number of at least 0, but is {quoted(cell)}"
                raise PredictionsError(path, problem, row=number, column=name)
        counts.append(list(map(int, cells)))
    total = sum(map(sum, counts))
    if not 0 < total <= MOST_SAMPLES:
        raise PredictionsError(path, f"must count from 1 to {MOST_SAMPLES} samples, but counts {total}")
    return names, torch.tensor(counts)


def score_confusion(
    path: Path,
    concern: ConcernSpec | ConcernRange | None,
    *,
    entries: Sequence[MetricEntry] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate the decisions of a file with a confusion matrix, as `evaluate_confusion`; see `read_confusion`."""
    names, counts = read_confusion(path)
    if concern is not None and list(concern.classes) != names:
        problem = f"must have the classes of the concern, {quoted(list(concern.classes))}, but has {quoted(names)}"
        raise PredictionsError(path, problem)
    others = [entry.name for entry in entries or () if entry.takes != "decisions"]
    if others:
        raise PredictionsError(path, f"holds decisions alone, but {', '.join(others)} must have more")
    return evaluate_confusion(counts, names, model=path.name, concern=concern, metrics=entries, intervals=intervals)
