"""The dangerous errors of each class, in the sentence that a report begins with, and in a table."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable, shown
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY, Outcomes
from mpcs_torch.evaluation.scores import Interval
from mpcs_torch.functional.concern.dangerous import dangerous_pairs_of
from mpcs_torch.tables import Table

TOLD = 3
"""The most classes in a sentence."""
MOST_LISTED = 16
"""The most classes in the table."""
DANGEROUS, MISSED, FALSE_ALARMS, PRECISION = "dangerous errors", "missed", "false alarms", "right of those decided so"
REFERRED, DECIDED_RIGHT = "referred", "right of the decided"


class OfClass(NamedTuple):
    """What became of the rows of a class, or of a group of classes."""

    label: str
    rows: Outcomes
    """Numbers, or sums of weights."""
    clusters: Outcomes | None
    """The numbers of clusters with such rows; None if they are not known."""
    units: str
    """What clusters are called, such as "patients"."""
    intervals: Mapping[str, Interval]
    """By rate."""
    dearest: float
    """The cost of the dearest dangerous error of the class; 0 if none of its errors is dangerous."""
    is_class: bool

    def told(self, name: str, rate: str, counted: str) -> str:
        """Return how many of the true rows are something, clusters first.

        Such as ``18 of 40 patients with severe (33 of 81 rows, 40.7 % [25.1, 58.8])``, or ``33 of 81 severe (...)``.
        """
        part, whole = (getattr(self.rows, each).item() for each in (name, "true"))
        of_rows, share = f"{number_text(part)} of {number_text(whole)}", percent(part, whole, self.intervals.get(rate))
        if self.clusters is None:
            return f"{of_rows} {counted} ({share})"
        of_clusters = (number_text(getattr(self.clusters, each).item()) for each in (name, "true"))
        beside = f" with {counted}" if counted != "rows" else ""
        return f"{' of '.join(of_clusters)} {self.units}{beside} ({of_rows} rows, {share})"

    def cell(self, part: float, whole: float, rate: str) -> str:
        """Return a part of some rows with its share, for a table."""
        share = percent(part, whole, self.intervals.get(rate)) if whole else ""
        return f"{number_text(part)} of {number_text(whole)}: {share}" if whole else "no rows"


def classes_of(scores: ClassifierScores, concern: ConcernSpec | None) -> list[OfClass]:
    """Return the outcomes of each class, and of each group of classes. Without a concern, all errors are dangerous."""
    size, names = len(scores.class_names), scores.class_names
    costs = (dangerous_pairs_of(concern, size) * (1.0 if concern is None else concern.matrix())).amax(dim=1)
    members = {name: [label] for label, name in enumerate(names)}
    members |= {} if concern is None else {name: list(of) for name, of in concern.class_groups}
    units, ends = scores.cluster_name, scores.class_intervals
    return [
        OfClass(name, of, scores.clusters.get(name), units, ends.get(name, {}), dearest, is_class=name in names)
        for name, of in scores.named_outcomes().items()
        for dearest in [costs[members[name]].max().item()]
    ]


def all_rows(scores: ClassifierScores, ends: Interval | None) -> OfClass:
    """Return the outcomes of all rows; the interval is that of the rate that is counted."""
    clusters = scores.clusters.get(EVERY)
    return OfClass("", scores.outcomes[EVERY], clusters, scores.cluster_name, {"": ends} if ends else {}, 0.0, False)


def worst_first(classes: Sequence[OfClass]) -> list[OfClass]:
    """Return classes, then groups, in the order of their dearest error, then of the share of dangerous errors."""
    return sorted(
        classes,
        key=lambda each: (
            not each.is_class,
            -each.dearest,
            -(each.rows.dangerous / each.rows.true.clamp(min=1)).item(),
        ),
    )


def harm_sentence(scores: ClassifierScores, concern: ConcernSpec | None, *, counted: str = "rows") -> str:
    """Say how many rows of which classes are dangerous errors, the dearest class first, to follow the name of a model.

    Clusters, such as patients, come before rows.
    """
    wanted = [each for each in worst_first(classes_of(scores, concern)) if each.dearest > 0 and each.is_class]
    parts = [each.told("dangerous", "dangerous_rate", _rows_of(each.label)) for each in wanted if each.rows.true]
    told = ", ".join(parts[:TOLD]) + (" and on others" if len(parts) > TOLD else "")
    absent = [_rows_of(each.label) for each in wanted if not each.rows.true]
    unknown = f" No {counted.removesuffix('s')} is {' or '.join(absent[:TOLD])}: errors there are not known."
    verb, rate = (
        ("is wrong on", "misclassification_rate") if concern is None else (f"makes {DANGEROUS} on", "dangerous_rate")
    )
    in_all = all_rows(scores, scores.intervals.get(rate)).told("dangerous", "", counted)
    return f"{verb} {told or 'none'}; {in_all} in all.{unknown if absent else ''}"


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


def harm_table(
    by_model: Mapping[str, ClassifierScores], concern: ConcernSpec | None, *, system: str = "model"
) -> Table | None:
    """Return what became of each class by each model, the dearest and worst class first; None for soft labels."""
    classes = {name: {each.label: each for each in classes_of(scores, concern)} for name, scores in by_model.items()}
    first = worst_first([*next(iter(classes.values())).values()])
    if not first:
        return None
    is_several, refers = len(by_model) > 1, any(scores.refers for scores in by_model.values())
    rows, listed = list[list[str]](), first[: max(TOLD, MOST_LISTED // len(by_model))]
    for label in (each.label for each in listed):
        for name, of_model in classes.items():
            model = [printable(name)] if is_several else []
            rows.append([shown(label, 40), *model, *_cells(of_model[label], refers=refers, is_wrong=concern is None)])
    if len(first) > len(listed):
        rows.append([f"and {len(first) - len(listed)} others", *[""] * (len(rows[0]) - 1)])
    units = [first[0].units] if first[0].clusters is not None else []
    header = ["class", *([system] if is_several else []), *units, "rows", *([] if concern is None else [DANGEROUS])]
    referrals = ([REFERRED], [DECIDED_RIGHT]) if refers else ([], [])
    return Table([*header, MISSED, *referrals[0], FALSE_ALARMS, PRECISION, *referrals[1]], rows)


def _cells(of: OfClass, *, refers: bool, is_wrong: bool) -> list[str]:
    true, right, predicted, referred, missed, dangerous = (each.item() for each in of.rows)
    cells = [] if of.clusters is None else [number_text(of.clusters.true.item())]
    cells.append(number_text(true))
    if not is_wrong:
        cells.append(of.cell(dangerous, true, "dangerous_rate") if of.dearest else "no error is dangerous")
    cells += [of.cell(missed, true, "error_rate"), *([of.cell(referred, true, "referral_rate")] if refers else [])]
    cells += [number_text(predicted - right), of.cell(right, predicted, "precision")]
    return [*cells, *([of.cell(right, true - referred, "selective_accuracy")] if refers else [])]
