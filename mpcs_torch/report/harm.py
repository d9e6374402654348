"""The dangerous errors of each class, in the sentence that a report begins with, and in a table."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable, shown
from mpcs_torch.evaluation.scores import Interval
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.tables import Table

TOLD = 3
"""The most classes in a sentence."""
MOST_LISTED = 12
"""The most classes in the table."""


class OfClass(NamedTuple):
    """The rows of a class that are dangerous errors."""

    label: str
    errors: float
    rows: float
    """With weights, sums of these."""
    ends: Interval | None
    """The 95 % interval of their share; None if it is not known."""
    dearest: float
    """The cost of the dearest dangerous error of the class; 0 if none of its errors is dangerous."""
    right: float | None = None
    """The number of its rows that are decided right; None if it is not known."""
    recall_ends: Interval | None = None
    """The 95 % interval of recall; None if it is not known."""


def classes_of(
    confusion: Tensor,
    concern: ConcernSpec | None,
    names: Sequence[str],
    class_intervals: Mapping[str, Mapping[str, Interval]] | None = None,
) -> list[OfClass]:
    """Return the dangerous errors of each class from a confusion matrix (C, C), rows true classes.

    Without a concern, all errors are dangerous. Intervals are those of Clopper and Pearson, unless those of
    ``"recall"`` and ``"error_rate"`` are given by class, where rows are weighted or not independent.
    """
    is_wrong = ~torch.eye(len(confusion), dtype=torch.bool)
    is_dangerous = is_wrong if concern is None else concern.dangerous_pairs()
    costs = is_dangerous * (1.0 if concern is None else concern.matrix())
    classes = list[OfClass]()
    for place, name in enumerate(names):
        row = confusion[place]
        errors, rows, right = (part.sum().item() for part in (row[is_dangerous[place]], row, row[place]))
        if class_intervals is None:
            ends, recall_ends = (clopper_pearson(round(n), round(rows)) if rows else None for n in (errors, right))
        else:  # of dangerous errors it is known where they are all errors of the class
            of_class = class_intervals.get(name, {})
            has_all = bool((is_dangerous[place] == is_wrong[place]).all())
            ends, recall_ends = of_class.get("error_rate") if has_all else None, of_class.get("recall")
        classes.append(OfClass(name, errors, rows, ends, costs[place].max().item(), right, recall_ends))
    return classes


def worst_first(classes: Sequence[OfClass]) -> list[OfClass]:
    """Return the classes in the order of their dearest error, then of the share of dangerous errors."""
    return sorted(classes, key=lambda each: (-each.dearest, -each.errors / max(each.rows, 1)))


def harm_sentence(
    classes: Sequence[OfClass], *, are_all: bool, ends: Interval | None = None, counted: str = "rows"
) -> str:
    """Say how many rows of which classes are dangerous errors, the dearest class first, to follow the name of a model.

    The 95 % interval is of their share of all rows.
    """
    wanted = [each for each in worst_first(classes) if each.dearest > 0]
    parts = [
        f"{number_text(each.errors)} of {number_text(each.rows)} {_rows_of(each.label)} "
        f"({percent(each.errors, each.rows, each.ends)})"
        for each in wanted
        if each.rows
    ]
    told = ", ".join(parts[:TOLD]) + (" and on others" if len(parts) > TOLD else "")
    absent = [_rows_of(each.label) for each in wanted if not each.rows]
    unknown = f" No {counted.removesuffix('s')} is {' or '.join(absent[:TOLD])}: errors there are not known."
    count, rows = (sum(numbers) for numbers in zip(*((each.errors, each.rows) for each in classes), strict=True))
    verb = "is wrong on" if are_all else "makes dangerous errors on"
    in_all = f"{number_text(count)} of {number_text(rows)} {counted} in all ({percent(count, rows, ends)})"
    return f"{verb} {told or 'none'}; {in_all}.{unknown if absent else ''}"


def _rows_of(label: str) -> str:
    """Return what the rows of a class are called: a class that is a number would be read as a count."""
    return f"of class {label}" if label.isdecimal() else printable(label)


def number_text(number: float) -> str:
    """Return a number of rows, or a sum of weights."""
    return f"{number:.0f}" if number >= 1000 or float(number).is_integer() else f"{number:.4g}"


def percent(count: float, total: float, ends: Interval | None = None) -> str:
    """Return a share, with its interval if there is one: ``18.4 % [10.5, 29]``."""
    share = f"{100 * count / total:.3g} %"
    return share if ends is None else f"{share} [{100 * ends[0]:.3g}, {100 * ends[1]:.3g}]"


def harm_table(by_model: Mapping[str, Sequence[OfClass]], *, are_all: bool, system: str = "model") -> Table:
    """Return the dangerous errors and the recall of each class by each model, the dearest and worst class first."""
    first, *_ = by_model.values()
    is_several, has_recall = len(by_model) > 1, first[0].right is not None
    header = ["class", *([system] if is_several else []), "rows", "errors" if are_all else "dangerous errors"]
    places, rows = {each.label: place for place, each in enumerate(first)}, list[list[str]]()
    listed = worst_first(first)[: max(TOLD, MOST_LISTED // len(by_model))]
    for label in (each.label for each in listed):
        for name, classes in by_model.items():
            of_class = classes[places[label]]
            row = [shown(label, 40), *([printable(name)] if is_several else []), number_text(of_class.rows)]
            rows.append([*row, _errors(of_class), *([_recall(of_class)] if has_recall else [])])
    if len(first) > len(listed):
        rows.append([f"and {len(first) - len(listed)} others", *[""] * (len(rows[0]) - 1)])
    return Table([*header, *(["recall"] if has_recall else [])], rows)


def _errors(of_class: OfClass) -> str:
    if not of_class.rows:
        return ""
    share = percent(of_class.errors, of_class.rows, of_class.ends)
    return f"{number_text(of_class.errors)}: {share}" if of_class.dearest else ""


def _recall(of_class: OfClass) -> str:
    return percent(of_class.right or 0, of_class.rows, of_class.recall_ends) if of_class.rows else ""
