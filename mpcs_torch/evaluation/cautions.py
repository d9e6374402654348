"""Warn of rows that are not independent, and of miscalibrated probabilities."""

import re
from collections.abc import Collection, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mpcs_torch.errors import printable, quoted
from mpcs_torch.evaluation.files.tables import FileTable, to_number, to_text
from mpcs_torch.evaluation.files.words import PERSONS
from mpcs_torch.evaluation.paired_differences import ABOUT_DIFFERENCES
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.evaluation_warnings import (
    MAX_KNOWN,
    EvaluationWarning,
    hashed,
)
from mpcs_torch.functional.probability.probability_accuracy import MeasuredProbabilities
from mpcs_torch.tables import in_percent

if TYPE_CHECKING:
    from mpcs_torch.evaluation.files.predictions import Predictions

PERSON = re.compile("|".join(PERSONS), re.I)
UNIT = re.compile(
    r"recording|session|video|(?<![a-z])((case|exam|scan|record|group)s?(?![a-z])|(id|idx|nr|no|number|uid)s?$)",
    re.I,
)
SHARED = {"rows": "a patient", "units": "a hospital or a reader", "trials": "a speaker"}
"""An example of what may be shared, for each kind of sample."""
MIN_NAMED = 5
"""The minimum number of distinct values for a warning about a column named like ``session_id``."""
MIN_UNNAMED = 10
"""The minimum number of distinct values for a warning about a column of other text."""
MAX_DISTINCT = 0.9
"""The number of distinct values, relative to the number of rows, above which values hardly repeat."""
MIN_DISTINCT = 0.1
"""The number of distinct values, relative to the number of rows, below which values are categories."""


def independence_of_clusters(clusters: str, kind: str, *, are_compared: bool) -> str:
    """Return the sentence that intervals assume independent ``clusters``, but not their "rows" or "trials"."""
    note = f"{CONFIDENCE_TEXT} intervals: {clusters} are independent, the {kind} of a cluster are not."
    return f"{note}{ABOUT_DIFFERENCES}" if are_compared else note


def independence(kind: str, column: str = "COLUMN") -> str:
    """Return the sentence that intervals assume independent samples: "rows", "units" or "trials"."""
    start = f"{CONFIDENCE_TEXT} intervals assume independent {kind}; {kind} that share something, such as "
    return f"{start}{SHARED[kind]}, need clusters (clusters=, or --cluster {quote(printable(column))})."


def units_among(columns: Mapping[str, tuple[Collection[str], int]]) -> dict[str, int]:
    """Return the number of distinct values of each column that seems to name units, such as patients.

    ``columns`` maps each column to its distinct values and to the number of rows that have a value.
    """
    return {
        name: len(column[0])
        for name, column in columns.items()
        if _names_units(name, *column)
    }


def shared(units: Mapping[str, int], option: str = "--cluster") -> list[EvaluationWarning]:
    """Return a warning if there are ``units``, the results of `units_among`: their rows may not be independent.

    The warning suggests to pass clusters by ``option``.
    """
    if not units:
        return []
    named = ", ".join(f"{quoted(name)} ({number})" for name, number in units.items())
    problem = f"rows share values of {named}; if such rows, as those of a patient, are not independent"
    without = f"intervals, tests and guarantees do not hold without clusters (`{option}`)"
    return [EvaluationWarning("E2", f"{problem}, {without}")]


class Repeats:
    """Count rows whose scores and label equal those of another row, in a sample of at most 4096 distinct rows."""

    def __init__(self) -> None:
        self._hashes = torch.zeros(0, dtype=torch.int64)
        self._counts = torch.zeros(0, dtype=torch.int64)

    def add(self, scores: Tensor, target: Tensor) -> None:
        """Add rows with ``scores`` (N, C) and ``target`` (N,).

        Rows whose highest score is a multiple of 1/1000, such as 1, are skipped: such scores are often equal by chance.
        With two classes, one number is the whole row, so multiples of 1/10000 are skipped, too.
        """
        steps = 10_000 if scores.shape[1] == 2 else 1000
        largest = steps * scores.amax(1).double()
        is_fine = (largest - largest.round()).abs() > 1e-3
        # Sums of scores with these factors are hardly ever equal for different scores.
        factors = torch.arange(1, scores.shape[1] + 1, dtype=torch.float64).sqrt()
        bits_of_sums = (scores.double() @ factors).view(torch.int64)
        hashes = hashed(bits_of_sums + target)[is_fine]
        self._join(hashes, torch.ones_like(hashes))

    def merge(self, other: "Repeats") -> None:
        """Add the rows that ``other`` counted."""
        self._join(other._hashes, other._counts)

    def warnings(self) -> list[EvaluationWarning]:
        """Return a warning if many rows repeat others; none if distinct rows are few, as with a decision tree."""
        rows = int(self._counts.sum())
        share = self._counts[self._counts > 1].sum().item() / max(1, rows)
        if share < 0.05 or len(self._counts) < max(MIN_UNNAMED, rows / 8):
            return []
        problem = f"about {in_percent(share)} of the rows have the scores and the label of another row"
        why = "if these are copies of samples, intervals are too narrow: leave copies out, or make them clusters"
        return [EvaluationWarning("E2", f"{problem}; {why} (`--cluster`)")]

    def _join(self, hashes: Tensor, counts: Tensor) -> None:
        if len(self._hashes) == MAX_KNOWN:
            is_kept = hashes <= self._hashes[-1]
            hashes, counts = hashes[is_kept], counts[is_kept]
        distinct, places = torch.cat([self._hashes, hashes]).unique(return_inverse=True)  # type: ignore[no-untyped-call]
        summed = torch.zeros_like(distinct)
        summed.index_add_(0, places, torch.cat([self._counts, counts]))
        self._hashes = distinct[:MAX_KNOWN].clone()
        self._counts = summed[:MAX_KNOWN].clone()


def unread_units(predictions: "Predictions") -> dict[str, int]:
    """Return the unused columns of a file that seem to name units, by `units_among`; none if it has clusters."""
    unread = predictions.roles.unused if predictions.options.cluster is None else ()
    return units_in_table(predictions.table, unread, predictions.class_names)


def units_in_table(
    table: FileTable, unread: Sequence[str], class_names: Collection[str] = ()
) -> dict[str, int]:
    """Return the unused columns ``unread`` of a file that seem to name units, by `units_among`.

    Columns that contain only class names are skipped.
    """
    columns = dict[str, tuple[Collection[str], int]]()
    if not unread:
        return {}
    for name, values in table.read(unread).columns.items():
        if isinstance(values, Tensor):
            continue
        filled = dict[str, int]()
        for counted in values.value_counts().to_pylist():
            text = to_text(counted["values"])
            if text:
                filled[text] = counted["counts"]
        if not filled.keys() <= {*class_names}:
            columns[name] = (filled.keys(), sum(filled.values()))
    return units_among(columns)


def _names_units(name: str, values: Collection[str], rows: int) -> bool:
    if not 1 < len(values) <= MAX_DISTINCT * rows:
        return False
    if PERSON.search(name):
        return True
    if len(values) < MIN_NAMED:
        return False
    if UNIT.search(name):
        return True
    is_text = any(to_number(value) is None for value in values)
    return is_text and len(values) >= max(MIN_UNNAMED, MIN_DISTINCT * rows)


def reversed_scores(area: object, way: str, model: str) -> list[EvaluationWarning]:
    """Return a warning if the interval ``area`` of an area under the ROC, a pair of numbers, ends below one half.

    The message begins with ``model``, and suggests the option ``way``.
    """
    if not isinstance(area, tuple) or area[1] >= 0.5:
        return []
    problem = f"the area under the ROC is below one half, at most {area[1]:.2g}"
    return [
        EvaluationWarning(
            "E6", f"{model}{problem}: are the scores those of the other class? ({way})"
        )
    ]


def uncalibrated(
    measured: MeasuredProbabilities, independent: float, model: str
) -> list[EvaluationWarning]:
    """Return a warning if probabilities in a bin of ``measured`` differ from the share of predictions that are right.

    The interval of this share (99 % for all bins together) must be more than 0.02 away from the probabilities in the
    bin. ``independent`` is the number of clusters divided by the number of rows; without clusters, 1. The message
    starts with ``model``.
    """
    largest_gap = (0.0, "")
    confidence = 1 - 0.01 / len(measured.low)
    bins = [part.tolist() for part in measured[1:]]
    for low, high, correct, incorrect in zip(*bins, strict=True):
        total = correct + incorrect
        # The interval is that of as many independent rows as there are clusters.
        low_rate, high_rate = 0.0, 1.0
        if round(total * independent) > 0:
            low_rate, high_rate = clopper_pearson(
                round(correct * independent),
                round(total * independent),
                confidence=confidence,
            )
        gap = max(low_rate - high, low - high_rate)
        rate = f"{in_percent(correct / total)} of {total:.0f}"
        problem = f"probabilities of {low:.3g} to {high:.3g} are right for {rate}"
        largest_gap = max(largest_gap, (gap, problem))
    gap, problem = largest_gap
    if gap <= 0.02:
        return []
    why = "they are not calibrated, so thresholds and decisions by cost may be wrong (mpcs calibrate)"
    return [EvaluationWarning("E3", f"{model}{problem}: {why}")]
