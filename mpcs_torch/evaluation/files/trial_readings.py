"""List the ways to read a detector's file: the column of scores, that of labels, and the label of targets."""

from collections.abc import Iterator, Sequence
from typing import Any

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.decision_columns import decision_columns
from mpcs_torch.evaluation.files.facts import Facts, label_text, number_or_text
from mpcs_torch.evaluation.files.label_columns import LabelColumns, has_two_words
from mpcs_torch.evaluation.files.one_probability import name_strength
from mpcs_torch.evaluation.files.roles import DECIDED, PROBABILITY, UNNAMED, Reading, Roles
from mpcs_torch.evaluation.files.score_sets import chosen_columns
from mpcs_torch.evaluation.files.tables import to_number
from mpcs_torch.evaluation.files.words import (
    DECISIONS,
    LABELS,
    POSITIVE,
    is_index,
    is_person,
    named_as,
    plain,
    target_or_not,
)


def trial_readings(facts: Facts, labels: LabelColumns) -> Iterator[Reading]:
    """Yield the readings of each column that may have scores, with each label that may be that of targets.

    Scores have a usual name for these, or are the only column of numbers; any numbers may be scores.
    """
    for name, strength in _scores(facts, labels):
        doubt = None
        if strength == UNNAMED:
            doubt = Rule("not_scores", column=name)
        elif _is_doubted(facts, labels):
            doubt = Rule("not_labels", column=labels.column)
        reading = Reading(
            Roles("positive", [name], [""], label=labels.column, of_class=0),
            strength,
            doubt,
        )
        yield from [reading] if labels.column is None else _of_targets(facts, reading)


def _scores(facts: Facts, labels: LabelColumns) -> list[tuple[str, int]]:
    """Return the columns that may have the scores, with the strength of the signs for it."""
    names = [name for name in facts.free if name not in labels.columns]
    if facts.options.score_columns:
        chosen = chosen_columns(facts, names)
        if len(chosen) > 1:
            raise facts.error(Rule("one_column_of_scores", number=len(chosen)))
        return [(chosen[0], PROBABILITY)]
    numbers = facts.by_kind(names, "whole", "number")
    if not facts.table.has_names:
        numbers = facts.by_kind(numbers, "number") or numbers
        return _unnamed(numbers)
    found = decision_columns(facts, labels, names)
    decided = {name for name, strength in found if strength > UNNAMED}
    named = [name for name in numbers if name_strength(facts, labels, name) > UNNAMED]
    scores = [name for name in named if name not in decided]
    if scores:
        return [(name, PROBABILITY) for name in scores]
    other = (LABELS | DECISIONS) - POSITIVE
    numbers = [
        name
        for name in numbers
        if not is_index(name)
        and not is_person(name)
        and plain(name) not in other
        and not facts.is_counted(name)
        and not facts.is_counter(name)
    ]
    # A column that only its name calls scores: reading its rows says what is wrong with its values.
    worded = [name for name in named_as(names, POSITIVE) if name not in decided]
    # Whole numbers are more often counts or places than scores.
    fractions = facts.by_kind(numbers, "number")
    whole = facts.by_kind(numbers, "whole")
    return _unnamed([*fractions, *whole] or worded)


def _unnamed(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the columns ``names``, which no name calls scores: if there is only one, it has the scores."""
    return [(name, DECIDED if len(names) == 1 else UNNAMED) for name in names]


def _is_doubted(facts: Facts, labels: LabelColumns) -> bool:
    """Return whether numbers alone say that a column has labels, and another column has two words or digits, too."""
    column = labels.column
    if column is None or labels.is_named or facts.options.target_label is not None:
        return False
    used = {column, *facts.options.score_columns}
    others = [name for name in facts.free if name not in used and not is_index(name)]
    return facts.kind(column) == "whole" and any(
        has_two_words(facts, name) for name in others
    )


def _of_targets(facts: Facts, reading: Reading) -> Iterator[Reading]:
    """Yield ``reading`` with each label that may be that of targets: the only class that is named."""
    roles, given = reading.roles, facts.options.target_label
    column, score = str(roles.label), roles.scores[0]
    known = facts.labels(column, in_all=True) if given is None else facts.all_texts(column)
    texts = sorted(known, key=number_or_text)
    kinds = {text: target_or_not(text) for text in texts}
    said: dict[str, Any] = {"column": column, "labels": texts}
    if given is not None:
        target = label_text(given)
        broken = None if target in known else Rule("no_target", label=target, **said)
        yield reading._replace(roles=roles._replace(classes=[target]), broken=broken)
        return
    named = [texts[place] for place in facts.named_class(score, texts)]
    targets, problem = list[str](), None
    # A name that is only a number, such as 0, counts columns.
    if named and to_number(score) is None and kinds[named[0]] != 1:
        targets = named
        if kinds[named[0]] == 0 or len(texts) > 2:
            problem = Rule("named_target", score=score, label=named[0], **said)
    elif {"0", "-1"} <= known or (None in kinds.values() and len(texts) < 3):
        targets = sorted(texts, key=lambda text: not kinds[text])
        problem = Rule("which_target", **said)
    elif None in kinds.values():
        yield reading._replace(broken=Rule("target_words", **said))
    else:
        yield reading
    for target in targets:
        yield reading._replace(
            roles=roles._replace(classes=[target]), doubt=reading.doubt or problem
        )
