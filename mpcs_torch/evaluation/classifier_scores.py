"""The values of a classifier on some rows, with its confusion matrix and the rates of each class."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.concern.checks import MAX_READABLE_CLASSES
from mpcs_torch.errors import shown
from mpcs_torch.evaluation.outcomes import (
    AT_RISK,
    COLUMNS,
    DANGEROUS_ERRORS,
    EVERY,
    FALSE_ALARMS,
    Outcomes,
    Share,
    group_rate,
    number_text,
)
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.scores import Measured, Scores, undefined_reason, with_ends
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.measure import Direction
from mpcs_torch.functional.probability.probability_accuracy import MeasuredProbabilities
from mpcs_torch.functional.probability.scores import ProbabilityMeans
from mpcs_torch.tables import Table, in_digits, in_percent, in_table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.metric_entry import MetricEntry

ID = re.compile(r"[ _-]?(id|no|nr|number)$", re.IGNORECASE)
"""A pattern for the end of the name of a column that numbers things, such as that of ``patient_id``."""
MAX_NAMED_CLASSES = 10
"""The maximum number of classes in the headline."""
MAX_WRONG_CLASSES = 3
"""The maximum number of wrong decisions for a class in the table of classes."""


@dataclass(frozen=True)
class ClassifierScores(Scores):
    """The values of a classifier on some rows."""

    entries: "tuple[MetricEntry, ...]"
    class_names: list[str] = field(default_factory=list)
    confusion: Tensor | None = None
    """The confusion matrix, (C, C), with a row for each true class; None for soft labels and for groups of rows. If
    rows may be referred, it is (C, C + A + 1): the last columns are A sets of classes, and then referrals."""
    decision_names: Sequence[str] = ()
    """The names of the columns of the confusion matrix."""
    refers: bool = False
    """Whether decisions may be referrals (no class) or coarse answers (sets of classes)."""
    class_intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    """The 95 % intervals of rates, by class or group of classes, then by rate."""
    outcomes: Mapping[str, Outcomes] = field(default_factory=dict)
    """The counts of outcomes by class or group of classes. The key `EVERY` is for all rows, and `AT_RISK` for all
    classes that are dangerous to miss."""
    without_danger: Collection[str] = ()
    """The classes and groups of classes for which no error is dangerous."""
    clusters: Mapping[str, Outcomes] = field(default_factory=dict)
    """Like ``outcomes``, but with numbers of clusters instead of rows; empty if there are no clusters, or too many."""
    cluster_name: str = ""
    """The word for clusters, such as "patients"."""
    weight: float = 0.0
    """The sum of the weights of all rows; without weights, the number of rows."""
    constant: tuple[str, float] | None = None
    """The class that is cheapest to predict for all rows, and the cost per row; None if no metric is relative to it."""
    reported: ProbabilityMeans | None = None
    measured: MeasuredProbabilities | None = None

    def by_class(self) -> dict[str, Measured]:
        """Return rates by name, such as ``recall[malignant]``: the value, and its interval or the reason for none."""
        many = f"classes are more than {MAX_READABLE_CLASSES}: name it as a metric"
        many_classes = Reason("undefined", text=many)
        no_rows = Reason("undefined", text="the class has no rows")
        none_counts = Reason("undefined", text="no row counts for it")
        rates = dict[str, Measured]()
        sensitivities = dict[str, Measured]()
        for name, outcomes in self.named_outcomes().items():
            for rate, share in self.rate_shares(name).items():
                reason = many_classes
                if outcomes.true.item() == 0:
                    reason = no_rows
                elif share.whole == 0:
                    # Such as the precision of a class that is never decided.
                    reason = none_counts
                measured = Measured(share.value, share.ends, reason)
                rates[f"{rate}[{name}]"] = measured
                if rate == "recall":
                    sensitivities[f"sensitivity[{name}]"] = measured
        return {**rates, **sensitivities}

    @property
    def is_weighted(self) -> bool:
        """Whether the confusion matrix holds sums of weights."""
        return self.confusion is not None and self.confusion.is_floating_point()

    @property
    def class_group_rates(self) -> dict[str, Direction]:
        """The rates of groups of classes that tables show, by name: "max" if a higher rate is better, else "min"."""
        rate = group_rate(refers=self.refers)
        direction: Direction = "max" if rate == "recall" else "min"
        # Rates that are metrics have columns of their own.
        metrics = {entry.of for entry in self.entries if entry.settings.get("rate") == rate}
        return {
            f"{rate}[{name}]": direction
            for name in self.named_outcomes()
            if name not in self.class_names and name not in metrics
        }

    def headline(self) -> str:
        """Return the numbers of rows, of classes, and of the rows of each: of more than 10, the fewest and the most.

        Beside these stands the accuracy of always deciding the most frequent class, with which accuracy compares.
        """
        rows = f"{self.rows} rows, {len(self.class_names)} classes"
        names = self.class_names
        if self.confusion is None or self.is_weighted:
            return f"{rows}: {_listed(names)}"
        counts = self.confusion.sum(dim=1).tolist()
        of_classes = f"{min(counts):.0f} to {max(counts):.0f} rows each"
        if len(names) <= MAX_NAMED_CLASSES:
            of_classes = _listed(
                [f"{name}: {count}" for name, count in zip(names, counts, strict=True)]
            )
        most_frequent = counts.index(max(counts))
        share = in_percent(counts[most_frequent] / max(1, sum(counts)))
        constant = f"always {names[most_frequent]} would be right in {share}"
        return f"{rows} ({of_classes}); {constant}"

    def about(self) -> dict[str, Any]:
        """Return the numbers of rows and the classes."""
        return {**super().about(), "classes": list(self.class_names)}

    def remarks(self, only: Collection[str] | None) -> list[str]:
        """Return remarks as sentences. If costs are relative to a constant decision, the first remark names it."""
        constant = [entry.name for entry in self.entries if entry.undefined == "constant"]
        relative = [name for name in constant if only is None or name in only]
        if self.constant is None or not relative:
            return super().remarks(only)
        name, cost = self.constant
        units = f"1 is the cost of always deciding {shown(name)}, which is {in_digits(cost, 4)} for each row"
        return [f"{', '.join(relative)}: {units}.", *super().remarks(only)]

    def value_text(self, name: str) -> str:
        """Return a value as text; the rate of dangerous errors also says their number."""
        text = super().value_text(name)
        if name != "dangerous_rate" or "dangerous" not in self.values:
            return text
        number = in_table(self.values["dangerous"])
        return f"{text} ({number} of {in_table(self.weight or self.rows)})"

    def undefined(self) -> dict[str, Reason]:
        """Return the reason why a value is NaN or infinite, for each metric with such a value."""
        undefined = [
            entry for entry in self.entries if not math.isfinite(self.values[entry.name])
        ]
        unpredicted = absent = ""
        if undefined and self.confusion is not None:
            unpredicted = self._empty_classes(self.confusion.sum(dim=0), "never predicted")
            absent = self._empty_classes(self.confusion.sum(dim=1), "without samples")
        reasons = dict[str, Reason]()
        for entry in undefined:
            text = _reason(entry, self.values[entry.name], unpredicted, absent)
            reasons[entry.name] = Reason("undefined", text=text)
        return reasons

    def named_outcomes(self) -> dict[str, Outcomes]:
        """Return the counts of outcomes for each class and group of classes, by its name; empty for soft labels."""
        return {
            name: of for name, of in self.outcomes.items() if name not in (EVERY, AT_RISK)
        }

    def rate_shares(self, name: str) -> dict[str, Share]:
        """Return the rates of ``name`` (a class, or a group of classes) as shares of rows, by the name of the rate."""
        weight = torch.tensor(self.weight, dtype=torch.float64)
        ends = self.class_intervals.get(name, {})
        rates = self.outcomes[name].rates(weight, refers=self.refers)
        return {
            rate: Share(part.item(), whole.item(), ends.get(rate))
            for rate, (part, whole) in rates.items()
        }

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return the number of samples and the rates of each class and group of classes; empty for soft labels."""
        by_class = dict[str, dict[str, float]]()
        for name, outcomes in self.named_outcomes().items():
            number = outcomes.true.item()
            by_class[name] = {"samples": number if self.is_weighted else int(number)}
            for rate, share in self.rate_shares(name).items():
                by_class[name][rate] = share.value
        return by_class

    def outcome_cells(self, name: str) -> dict[str, str]:
        """Return the cells of the class (or group of classes) ``name`` in the table of outcomes, by column title."""
        shares = self.rate_shares(name)
        of = self.outcomes[name]
        cells = dict[str, str]()
        if name in self.clusters:
            cells[self.cluster_name] = number_text(self.clusters[name].true.item())
        cells["rows"] = number_text(of.true.item())
        for title, rate in COLUMNS.items():
            if title == FALSE_ALARMS:
                cells[title] = number_text(of.false_alarms.item())
            elif title == DANGEROUS_ERRORS and name in self.without_danger:
                cells[title] = "none counts as dangerous"
            elif rate in shares:
                cells[title] = str(shares[rate])
        return cells

    def class_table(self) -> Table | None:
        """Return a table with a row for each class; None for soft labels, or for more than `MAX_READABLE_CLASSES`.

        If rows may be referred, the table shows the counts behind each rate, too.
        """
        if not self.confusion_is_shown:
            return None
        cells = list[dict[str, str]]()
        for name, row in self.per_class().items():
            if self.refers:
                cells.append({"class": name, **self.outcome_cells(name)})
                continue
            counted = "weight" if self.is_weighted else "samples"
            if counted == self.cluster_name:
                counted = "rows"  # such as pixels, whose samples are the clusters
            of_class = {"class": name, counted: in_table(row["samples"])}
            if self.clusters:
                of_class[self.cluster_name] = f"{self.clusters[name].true.item():.0f}"
            intervals = self.class_intervals.get(name, {})
            for rate in ("precision", "recall", "specificity"):
                text = f"{row[rate]:.4g}" if rate in intervals else in_table(row[rate])
                of_class[rate] = with_ends(text, intervals.get(rate), 3)
            if self.confusion is not None:
                of_class["wrongly decided as"] = self._wrong_decisions(name)
            cells.append(of_class)
        return Table.from_records(cells)

    def _wrong_decisions(self, name: str) -> str:
        """Return the wrong decisions for rows of a class, the most frequent first; empty for a group of classes."""
        if self.confusion is None or name not in self.class_names:
            return ""
        true = self.class_names.index(name)
        numbers = self.confusion[true].tolist()
        wrong = [label for label, number in enumerate(numbers) if number and label != true]
        wrong.sort(key=lambda label: -numbers[label])  # keeps the order of equal numbers
        texts = [
            f"{self.decision_names[label]}: {in_table(numbers[label])}" for label in wrong
        ]
        return _listed(texts, MAX_WRONG_CLASSES)

    @property
    def confusion_is_shown(self) -> bool:
        """Whether tables have a row for each class: if outcomes are known for up to `MAX_READABLE_CLASSES` classes."""
        return 0 < len(self.named_outcomes()) <= MAX_READABLE_CLASSES

    def class_parts(self, title: str) -> list[Table | str]:
        """Return the table of classes. If rows may be referred, add the confusion matrix and sentences on referrals.

        The matrix comes first, under ``title`` if one is given. With a title, but without a matrix, the list is empty.
        """
        parts = list[Table | str]()
        by_class = self.class_table()
        if self.refers and self.confusion is not None and self.confusion_is_shown:
            rows = zip(self.class_names, self.confusion.tolist(), strict=True)
            cells = [[name, *map(in_table, row)] for name, row in rows]
            if title:
                parts.append(title)
            parts.append(Table(["true class", *self.decision_names], cells))
        elif title:
            return []
        if by_class is not None:
            parts.append(by_class)
        remarks = self.remarks_of_referrals()
        if remarks:
            parts.append("\n".join(remarks))
        return parts

    def remarks_of_referrals(self) -> list[str]:
        """Return sentences on how many rows are referred; if there are clusters, also on how many clusters."""
        if not self.refers or EVERY not in self.outcomes:
            return []
        rows = "rows, weighted," if self.is_weighted else "rows"
        counted = [(rows, self.outcomes, "are referred", "are of")]
        if self.clusters:
            of_clusters = (
                self.cluster_name,
                self.clusters,
                "have a referred row",
                "have one of",
            )
            counted.insert(0, of_clusters)
        sentences = list[str]()
        for units, outcomes, verb, whose in counted:
            referred, total = outcomes[EVERY].referred.item(), outcomes[EVERY].true.item()
            needed = outcomes[AT_RISK].referred.item()
            sentences.append(
                f"Of 1 000 {units}, {1000 * referred / total:.0f} {verb}; {1000 * needed / total:.0f} of these "
                f"{whose} a class that is dangerous to miss ({referred:.6g} and {needed:.6g} of {total:.6g} here)."
            )
        return sentences

    def value_range(self, metric: str) -> tuple[float, float] | None:
        """Return the lowest and highest possible value of ``metric`` (or of a rate); None if they are not known."""
        for entry in self.entries:
            if entry.name == metric:
                return entry.limits
        return (0.0, 1.0)  # of a rate of a class

    def to_dict(self) -> dict[str, Any]:
        """Return all values as dictionaries, lists, strings and numbers."""
        plain = super().to_dict()
        if undefined := self.undefined():
            plain["undefined"] = self._reasons(undefined)
        if self.confusion is not None:
            plain["confusion"] = self.confusion.tolist()
        if self.outcomes:
            plain["per_class"] = {}
            for name, rates in self.per_class().items():
                of_class = dict[str, Any](rates)
                intervals = self.class_intervals.get(name)
                if intervals:
                    of_class["intervals"] = dict(intervals)
                of_class["counts"] = _plain_outcomes(self.outcomes[name])
                if name in self.clusters:
                    of_class[self.cluster_name] = _plain_outcomes(self.clusters[name])
                plain["per_class"][name] = of_class
        return plain

    def _empty_classes(self, counts: Tensor, what: str) -> str:
        """Return a sentence that the classes with a count of 0 are ``what``, or "" if there are no such classes."""
        empty = [
            self.class_names[label] for label in (counts == 0).nonzero().flatten().tolist()
        ]
        if not empty:
            return ""
        named = ", ".join(f"'{shown(name)}'" for name in empty[:3])
        if len(empty) == 1:
            return f"class {named} is {what}"
        more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
        return f"classes {named}{more} are {what}"


def _plain_outcomes(outcomes: Outcomes) -> dict[str, float]:
    return {field: number.item() for field, number in outcomes._asdict().items()}


def cluster_plural(column: str) -> str:
    """Return the word for the clusters of a column, such as "patients" for ``patient_id``."""
    name = ID.sub("", column).lower()
    if not name.isalpha():
        return f"clusters ({column})"
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return name if name.endswith("s") else f"{name}s"


def _reason(entry: "MetricEntry", value: float, unpredicted: str, absent: str) -> str:
    match entry.undefined:
        case "unpredicted" if unpredicted:
            return unpredicted
        case "absent" if absent:
            return absent
        case "either":
            reasons = [text for text in (unpredicted, absent) if text]
            return "; ".join(reasons) or "precision and recall are 0"
        case "constant":
            return "a constant decision would cost nothing"
        case "probability 0" if math.isinf(value):
            return "the probability of a label is 0"
    return str(undefined_reason(value))


def _listed(texts: Sequence[str], most: int = MAX_NAMED_CLASSES) -> str:
    """Join up to ``most`` texts by commas, with "..." for those that are left out."""
    more = ["..."] if len(texts) > most else []
    return ", ".join([*texts[:most], *more])
