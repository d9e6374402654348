"""The values of the rows of a classifier, with its confusion matrix and the rates of each class."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from mpcs_torch.errors import shown
from mpcs_torch.evaluation.scores import Interval, Measured, Scores, interval_text, reason_of
from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities
from mpcs_torch.functional.quality.confusion import class_counts
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.by_name import MetricEntry

MOST_CLASSES = 30
"""With more classes, they are not listed one by one."""
NAMED = 3
"""The most classes that a reason names."""


@dataclass(frozen=True)
class ClassifierScores(Scores):
    """The values of some rows of a classifier."""

    entries: "tuple[MetricEntry, ...]"
    class_names: list[str] = field(default_factory=list)
    confusion: Tensor | None = None
    """int64 (C, C), rows true classes; None for soft labels and for groups."""
    class_intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    """The 95 % intervals of the rates of classes and of groups of classes, by name and rate."""
    group_counts: Mapping[str, Tensor] = field(default_factory=dict)
    """(3,) by group of classes: right, true and predicted rows; right is a decision for any class of the group."""
    weight: float = 0.0
    """The sum of the weights of all rows; without weights, their number."""
    constant: tuple[str, float] | None = None
    """The class that costs least if it is always decided, and this cost per row; None if costs are not relative to it.
    """
    reported: ProbabilityMeans | None = None
    measured: MeasuredProbabilities | None = None

    def by_class(self) -> dict[str, Measured]:
        """Return the rates of classes, such as ``recall[malignant]``."""
        why = "without rows, or a metric such as accuracy, classes have no intervals"
        rates = {
            f"{rate}[{name}]": (row[rate], self.class_intervals.get(name, {}).get(rate), why)
            for name, row in self.per_class().items()
            for rate in ("precision", "recall", "specificity", "error_rate")
        }
        sensitivity = {name.replace("recall", "sensitivity", 1): rates[name] for name in rates if name[0] == "r"}
        return {**rates, **sensitivity}

    @property
    def is_weighted(self) -> bool:
        """Whether the confusion matrix has sums of weights."""
        return self.confusion is not None and self.confusion.is_floating_point()

    @property
    def of_class_groups(self) -> list[str]:
        """The recall of each group of classes."""
        return [f"recall[{name}]" for name in self.group_counts]

    def headline(self) -> str:
        """Say how many rows there are, and which classes."""
        names = ", ".join(self.class_names[:10]) + (", ..." if len(self.class_names) > 10 else "")
        return f"{self.rows} rows, {len(self.class_names)} classes: {names}"

    def about(self) -> dict[str, Any]:
        """Return the numbers of rows and the classes."""
        return {**super().about(), "classes": list(self.class_names)}

    def remarks(self) -> list[str]:
        """Return what costs are relative to, beside the other remarks."""
        if self.constant is None:
            return super().remarks()
        relative = [entry.name for entry in self.entries if entry.undefined == "constant"]
        name, cost = self.constant
        units = f"1 is the cost of always deciding {shown(name)}, {cost:.4g} for each row"
        return [f"{', '.join(relative)}: {units}.", *super().remarks()]

    def undefined(self) -> dict[str, str]:
        """Return why metrics are NaN or infinite, by metric."""
        unfit = [entry for entry in self.entries if not math.isfinite(self.values[entry.name])]
        unpredicted = absent = ""
        if unfit and self.confusion is not None:
            unpredicted = self._named(self.confusion.sum(dim=0), "never predicted")
            absent = self._named(self.confusion.sum(dim=1), "without samples")
        return {entry.name: _reason(entry, self.values[entry.name], unpredicted, absent) for entry in unfit}

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return samples and rates of each class, and of each group of classes; empty for soft labels."""
        counts = dict(self.group_counts)
        if self.confusion is not None:
            of_classes = class_counts(self.confusion).counts.unbind(-1)
            counts = {**dict(zip(self.class_names, of_classes, strict=True)), **counts}
        rows = {}
        for name, of_class in counts.items():
            right, true, predicted = of_class.unbind()
            others = self.weight - true
            rates = {"precision": right / predicted, "recall": right / true}
            rates |= {"specificity": (others - predicted + right) / others, "error_rate": 1 - right / true}
            samples = true.item() if self.confusion is None or self.confusion.is_floating_point() else int(true)
            rows[name] = {"samples": samples, **{rate: value.item() for rate, value in rates.items()}}
        return rows

    def class_table(self) -> Table | None:
        """Return a row for each class; None for soft labels, and where there are more than `MOST_CLASSES`."""
        rows = self.per_class()
        if not rows or len(rows) > MOST_CLASSES:
            return None
        cells = list[list[str]]()
        for name, row in rows.items():
            ends = self.class_intervals.get(name, {})
            cells.append([name])
            for rate, value in row.items():
                text = f"{value:.4g} ({interval_text(ends[rate], 3)})" if rate in ends else f"{value:.6g}"
                cells[-1].append(text)
        return Table(["class", "samples", "precision", "recall", "specificity", "error rate"], cells)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        plain = super().to_dict()
        if undefined := self.undefined():
            plain["undefined"] = undefined
        if self.confusion is not None:
            plain["confusion"] = self.confusion.tolist()
        if self.confusion is not None or self.group_counts:
            plain["per_class"] = {
                name: {**rates, **({"intervals": dict(ends)} if (ends := self.class_intervals.get(name)) else {})}
                for name, rates in self.per_class().items()
            }
        return plain

    def _named(self, counts: Tensor, what: str) -> str:
        """Return a sentence about the classes with a count of 0; empty if there is none."""
        empty = [self.class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
        if not empty:
            return ""
        named = ", ".join(f"'{shown(name)}'" for name in empty[:NAMED])
        more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
        return f"class {named} is {what}" if len(empty) == 1 else f"classes {named}{more} are {what}"


def _reason(entry: "MetricEntry", value: float, unpredicted: str, absent: str) -> str:
    match entry.undefined:
        case "unpredicted" if unpredicted:
            return unpredicted
        case "absent" if absent:
            return absent
        case "either":
            return "; ".join(filter(None, (unpredicted, absent))) or "precision and recall are 0"
        case "constant":
            return "a decision that is always the same would cost nothing"
        case "probability 0" if math.isinf(value):
            return "the probability of a label is 0"
    return reason_of(value)
