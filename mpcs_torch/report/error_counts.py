"""Counts of dangerous and other errors by class, in the first sentence of a report and in a table."""

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
    REFERRALS,
    Share,
)
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.concern.dangerous import dangerous_pair_mask
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.tables import Table

MAX_SENTENCES = 3
"""The maximum number of models with a sentence for each, and of classes in a sentence."""
MAX_ERROR_ROWS = 16
"""The maximum number of classes in the table; with several models, about the maximum number of rows."""
WRONG = "wrong decisions"
"""The title of the number of wrong decisions."""
COST = "cost of errors"
"""The title of the mean cost of a row, divided by that of the best constant decision."""
TERMS = {
    DANGEROUS_ERRORS: "rows that are decided as something that the concern calls dangerous for their class",
    MISSED: "rows of the class, or of a class of the group, that are decided as something else, of all its rows",
    WRONG: "rows that are decided as another class; referred rows are none",
    REFERRALS: "rows that are not decided, but handed to a person, of all rows of the class",
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
"""Explanations of terms on pages, by term. Other metrics are explained by the first line of their documentation."""


def explanations(result: Result[Any]) -> dict[str, str]:
    """Return an explanation of each metric in ``result`` and of other terms on its page, by metric or term."""
    first_lines = dict[str, str]()
    for scores in result.models.values():
        for entry in scores.entries:
            metric = getattr(entry, "metric", None)
            text = "" if metric is None else metric.__doc__ or ""
            line, _, _ = text.strip().partition("\n")
            first_lines[entry.name] = line.removeprefix("Compute ")
    return {**first_lines, **TERMS}


def max_danger_costs(
    scores: ClassifierScores, concern: ConcernSpec | None
) -> dict[str, float]:
    """Return the cost of the most expensive dangerous error of each class and class group; 0 if there is none.

    Classes come before groups. Among each, the highest cost comes first, and for equal costs, the highest share of
    dangerous errors. Without a concern, all errors are dangerous and cost 1.
    """
    names = scores.class_names
    costs = dangerous_pair_mask(concern, len(names)).double()
    members = {name: [label] for label, name in enumerate(names)}
    if concern is not None:
        costs = costs * concern.mpcs_weights()
        members |= {name: list(labels) for name, labels in concern.class_groups}
    highest = costs.amax(dim=1)
    max_costs = {
        name: highest[members[name]].max().item() for name in scores.named_outcomes()
    }

    def order(name: str) -> tuple[bool, float, float]:
        outcomes = scores.outcomes[name]
        share = (outcomes.dangerous / outcomes.true.clamp(min=1)).item()
        is_group = name not in names
        return is_group, -max_costs[name], -share

    return {name: max_costs[name] for name in sorted(max_costs, key=order)}


def count_and_share(
    scores: ClassifierScores,
    field: str,
    ends: Interval | None,
    *,
    of: str = EVERY,
    what: str,
) -> list[str]:
    """Return two texts: how many rows have the outcome ``field``, and which share of the rows that is.

    Only rows of the class ``of`` count; by default, all do. Examples: ``33 of 81 severe`` and ``40.7 % [25.1, 58.8]``.
    If rows have clusters, such as patients, the texts begin with these: ``18 of 40 patients with severe`` and
    ``45 % [29.3, 61.5]; 33 of 81 rows: 40.7 % [25.1, 58.8]``. The latter interval, of the share of rows, is ``ends``;
    that of clusters is exact. ``what`` is the word for the rows, such as "severe".
    """
    rows = scores.outcomes[of]
    share = Share(getattr(rows, field).item(), rows.true.item(), ends)
    clusters = scores.clusters.get(of)
    if clusters is None:
        return [f"{share.counts} {what}", share.phrase]
    part = int(getattr(clusters, field))
    whole = int(clusters.true)
    exact = None
    if ends is not None and whole:
        exact = clopper_pearson(part, whole)
    units = Share(part, whole, exact)
    whose = scores.cluster_name if of == EVERY else f"{scores.cluster_name} with {what}"
    of_rows = f"{share.counts} rows: {share.phrase}"
    if not scores.is_weighted:  # the weighted share of clusters is not known
        of_rows = f"{units.phrase}; {of_rows}"
    return [f"{units.counts} {whose}", of_rows]


def outcome_tiles(
    scores: ClassifierScores, concern: ConcernSpec | None
) -> dict[str, list[str]]:
    """Return key figures by title, such as "wrong decisions". Most are two texts: a count of rows, and their share."""
    facts = dict[str, list[str]]()
    if EVERY not in scores.outcomes:
        return facts
    every = scores.outcomes[EVERY]
    ends = scores.intervals
    what = f"{row_unit(scores)}s"
    if concern is not None:
        facts[DANGEROUS_ERRORS] = count_and_share(
            scores, "dangerous", ends.get("dangerous_rate"), what=what
        )
    facts[WRONG] = count_and_share(
        scores, "missed", ends.get("misclassification_rate"), what=what
    )
    if scores.refers:
        referred = None
        if "coverage" in ends:
            low, high = ends["coverage"]
            referred = (1 - high, 1 - low)
        facts[REFERRALS] = count_and_share(scores, "referred", referred, what=what)
        right = Share(
            every.right.item(),
            (every.true - every.referred).item(),
            ends.get("selective_accuracy"),
        )
        facts[DECIDED_RIGHT] = ["none is decided"]
        if right.whole:
            facts[DECIDED_RIGHT] = [right.percent, f"{right.counts} {what}"]
    if scores.constant is not None and "expected_concern" in scores.values:
        always = f"1 is the cost of always deciding {printable(scores.constant[0])}"
        facts[COST] = [f"{scores.values['expected_concern']:.3g}", always]
    return facts


def row_unit(scores: ClassifierScores) -> str:
    """Return the word for a row in a sentence: "weighted row" if rows have weights, otherwise "row"."""
    return "weighted row" if scores.is_weighted else "row"


def error_sentence(
    scores: ClassifierScores, concern: ConcernSpec | None, *, row: str = ""
) -> str:
    """Return a sentence without its subject, the model: dangerous errors by class, the most expensive class first.

    If rows have clusters, such as patients, clusters are counted, too. ``row`` is the word for a row.
    """
    row = row or row_unit(scores)
    what = f"{row}s"
    verb, rate = "makes dangerous errors", "dangerous_rate"
    if concern is None:
        verb, rate = "is wrong", "misclassification_rate"
    counted = list[str]()
    absent = list[str]()  # classes without rows
    for name, cost in max_danger_costs(scores, concern).items():
        if cost == 0 or name not in scores.class_names:
            continue
        rows = _class_rows(name)
        if scores.outcomes[name].true:
            ends = scores.class_intervals.get(name, {}).get("dangerous_rate")
            count, share = count_and_share(scores, "dangerous", ends, of=name, what=rows)
            counted.append(f"{count} ({share})")
        else:
            absent.append(rows)
    first = ", ".join(counted[:MAX_SENTENCES]) or "none"
    sentence = f"{verb} on {first}"
    if len(counted) > MAX_SENTENCES:
        sentence += " and on others"
    if len(counted) != 1:
        ends = scores.intervals.get(rate)
        count, share = count_and_share(scores, "dangerous", ends, what=what)
        sentence += f"; {count} ({share}) in all"
    sentence += "."
    if absent:
        names = " or ".join(absent[:MAX_SENTENCES])
        sentence += f" No {row} is {names}: errors there are not known."
    return sentence


def _class_rows(name: str) -> str:
    """Return ``name``, but "of class 3" for the name "3", because a number would read like a count."""
    return f"of class {name}" if name.isdecimal() else printable(name)


def error_table(
    by_model: Mapping[str, ClassifierScores],
    concern: ConcernSpec | None,
    *,
    system: str = "model",
) -> Table | None:
    """Return a table of errors, a row for each class and model, the worst class first; None for soft labels."""
    names = list(max_danger_costs(next(iter(by_model.values())), concern))
    listed = names[: max(MAX_SENTENCES, MAX_ERROR_ROWS // len(by_model))]
    rows = list[dict[str, str]]()
    for name in listed:
        for model, scores in by_model.items():
            row = {"class": shown(name, 40)}
            if len(by_model) > 1:
                row[system] = printable(model)
            row |= scores.outcome_cells(name)
            if concern is None:
                del row[DANGEROUS_ERRORS]
            rows.append(row)
    if len(names) > len(listed):
        others = f"and {len(names) - len(listed)} others"
        rows.append({**dict.fromkeys(rows[0], ""), "class": others})
    return Table.from_records(rows) if rows else None
