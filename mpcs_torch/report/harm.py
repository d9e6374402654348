"""The outcomes of each class: the dangerous errors, in the sentence that a report begins with, and in a table."""

from collections.abc import Mapping
from typing import Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable, shown
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import (
    DANGEROUS_ERRORS,
    DECIDED_RIGHT,
    EVERY,
    FALSE_ALARMS,
    MISSED,
    PRECISION,
    REFERRED,
    Share,
)
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.concern.dangerous import dangerous_pairs_of
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.tables import Table

MAX_SENTENCES = 3
"""The most models that have a sentence each, and the most classes in a sentence."""
MAX_LISTED = 16
"""The most classes in the table."""
WRONG, COST = "wrong decisions", "cost of errors"
TERMS = {
    DANGEROUS_ERRORS: "rows that are decided as something that the concern calls dangerous for their class",
    MISSED: "rows of the class, or of a class of the group, that are decided as something else, of all its rows",
    WRONG: "rows that are decided as another class; referred rows are none",
    REFERRED: "rows that are not decided, but handed to a person, of all rows of the class",
    FALSE_ALARMS: "rows of other classes that are decided as this one",
    PRECISION: "how many of the rows that are decided as the class are of the class",
    DECIDED_RIGHT: "how many of the rows that are not referred are decided as their class; of a class: of its rows",
    "concern": "what the error costs, in the unit of the concern",
    CONFIDENCE_TEXT: f"{CONFIDENCE_TEXT} confidence interval: where the value may be for new rows like these",
    "p": "how often chance alone would show such a difference, or a larger one",
    "p, corrected": "the same, allowing for all rows of this table",
    "dangerous": "the number of dangerous errors",
    "dangerous_rate": "dangerous errors, as a share of all rows",
    "selective_dangerous_rate": "dangerous errors, as a share of the decided rows",
    "destructive_rate": "dangerous errors, as a share of all errors: how bad an error is, not how frequent",
    "mean_concern": "mean cost of the decisions and referrals of a row, in the unit of the concern",
    "expected_concern": "mean cost of a row, divided by that of always deciding the class that then costs least",
    "least_concern_cost": "the same, if rows were decided by the cost of each error, not for the most probable class",
}
"""By term: what a tile, a column or a metric is. Other metrics are explained by the first line of their documentation.
"""


def terms_of(result: Result[Any]) -> dict[str, str]:
    """Return the explanation of each term that a page of a result may show."""
    entries = {entry.name: entry for scores in result.models.values() for entry in scores.entries}
    texts = {name: getattr(entry, "metric", None).__doc__ or "" for name, entry in entries.items()}
    first_lines = {name: text.strip().partition("\n")[0].removeprefix("Compute ") for name, text in texts.items()}
    return {**first_lines, **TERMS}


def dearest_errors(scores: ClassifierScores, concern: ConcernSpec | None) -> dict[str, float]:
    """Return the cost of the dearest dangerous error of each class and group of classes, the worst of them first.

    Classes come before groups; then decide the cost, which is 0 where no error is dangerous, and the share of dangerous
    errors. Without a concern, all errors are dangerous, and cost 1.
    """
    names = scores.class_names
    costs = dangerous_pairs_of(concern, len(names)) * (1.0 if concern is None else concern.matrix())
    members = {name: [label] for label, name in enumerate(names)}
    members |= {} if concern is None else {name: list(of) for name, of in concern.class_groups}
    dearest = {name: costs.amax(dim=1)[members[name]].max().item() for name in scores.named_outcomes()}

    def order(name: str) -> tuple[bool, float, float]:
        of = scores.outcomes[name]
        return name not in names, -dearest[name], -(of.dangerous / of.true.clamp(min=1)).item()

    return {name: dearest[name] for name in sorted(dearest, key=order)}


def counted(scores: ClassifierScores, field: str, ends: Interval | None, *, of: str = EVERY, what: str) -> list[str]:
    """Return how many of the rows of a class, or of all, are something: clusters first, then rows.

    Such as ``18 of 40 patients with severe`` and ``45 % [29.3, 61.5]; 33 of 81 rows: 40.7 % [25.1, 58.8]``, of which
    the first is exact for independent clusters; without clusters, ``33 of 81 severe`` and ``40.7 % [25.1, 58.8]``.
    """
    rows, clusters = scores.outcomes[of], scores.clusters.get(of)
    share = Share(getattr(rows, field).item(), rows.true.item(), ends)
    if clusters is None:
        return [f"{share.counts} {what}", share.phrase]
    part, whole = int(getattr(clusters, field)), int(clusters.true)
    units = Share(part, whole, clopper_pearson(part, whole) if ends is not None and whole else None)
    whose = scores.cluster_name if of == EVERY else f"{scores.cluster_name} with {what}"
    of_units = "" if scores.is_weighted else f"{units.phrase}; "  # the share of weighted patients is not known
    return [f"{units.counts} {whose}", f"{of_units}{share.counts} rows: {share.phrase}"]


def facts_of(scores: ClassifierScores, concern: ConcernSpec | None) -> dict[str, list[str]]:
    """Return what became of all rows of a model, by title: each number, and what else is known of it."""
    facts = dict[str, list[str]]()
    if EVERY not in scores.outcomes:
        return facts
    every, ends, what = scores.outcomes[EVERY], scores.intervals, rows_of(scores)
    if concern is not None:
        facts[DANGEROUS_ERRORS] = counted(scores, "dangerous", ends.get("dangerous_rate"), what=what)
    facts[WRONG] = counted(scores, "missed", ends.get("misclassification_rate"), what=what)
    if scores.refers:
        decided = ends.get("coverage")
        referred = None if decided is None else (1 - decided[1], 1 - decided[0])
        facts[REFERRED] = counted(scores, "referred", referred, what=what)
        right = Share(every.right.item(), (every.true - every.referred).item(), ends.get("selective_accuracy"))
        facts[DECIDED_RIGHT] = [right.percent, f"{right.counts} {what}"] if right.whole else ["none is decided"]
    if scores.constant is not None and "expected_concern" in scores.values:
        always = f"1 is the cost of always deciding {printable(scores.constant[0])}"
        facts[COST] = [f"{scores.values['expected_concern']:.3g}", always]
    return facts


def rows_of(scores: ClassifierScores) -> str:
    """Return what the rows are called."""
    return "weighted rows" if scores.is_weighted else "rows"


def harm_sentence(scores: ClassifierScores, concern: ConcernSpec | None, *, what: str = "") -> str:
    """Say how many rows of which classes are dangerous errors, the dearest class first, to follow the name of a model.

    Clusters, such as patients, come before rows. Where errors of one class alone are dangerous, they are all.
    """
    what, named = what or rows_of(scores), dict[bool, list[str]]({True: [], False: []})
    for name, cost in dearest_errors(scores, concern).items():
        if cost > 0 and name in scores.class_names:
            named[bool(scores.outcomes[name].true)].append(name)
    verb, rate = (
        ("is wrong", "misclassification_rate") if concern is None else ("makes dangerous errors", "dangerous_rate")
    )

    def in_words(name: str, what: str, ends: Interval | None) -> str:
        return "{} ({})".format(*counted(scores, "dangerous", ends, of=name, what=what))

    parts = [
        in_words(name, _rows_of(name), scores.class_intervals.get(name, {}).get("dangerous_rate"))
        for name in named[True]
    ]
    of_classes = (", ".join(parts[:MAX_SENTENCES]) or "none") + (" and on others" if len(parts) > MAX_SENTENCES else "")
    absent = " or ".join(map(_rows_of, named[False][:MAX_SENTENCES]))
    unknown = f" No {what.removesuffix('s')} is {absent}: errors there are not known." if absent else ""
    in_all = "" if len(parts) == 1 else f"; {in_words(EVERY, what, scores.intervals.get(rate))} in all"
    return f"{verb} on {of_classes}{in_all}.{unknown}"


def _rows_of(name: str) -> str:
    """Return what the rows of a class are called: a class that is a number would be read as a count."""
    return f"of class {name}" if name.isdecimal() else printable(name)


def harm_table(
    by_model: Mapping[str, ClassifierScores], concern: ConcernSpec | None, *, system: str = "model"
) -> Table | None:
    """Return what became of each class by each model, the dearest and worst class first; None for soft labels."""
    dearest = dearest_errors(next(iter(by_model.values())), concern)
    listed, rows = [*dearest][: max(MAX_SENTENCES, MAX_LISTED // len(by_model))], list[dict[str, str]]()
    for name in listed:
        for model, scores in by_model.items():
            of_model = {system: printable(model)} if len(by_model) > 1 else {}
            rows.append({"class": shown(name, 40), **of_model, **scores.outcome_cells(name)})
            if concern is None:
                del rows[-1][DANGEROUS_ERRORS]
    if len(dearest) > len(listed):
        rows.append({**dict.fromkeys(rows[0], ""), "class": f"and {len(dearest) - len(listed)} others"})
    return Table.of_records(rows) if rows else None
