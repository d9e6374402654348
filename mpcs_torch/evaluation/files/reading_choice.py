"""Choose how a file is read: the one reading that is clear, or an error with commands that were tried."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from mpcs_torch.errors import Rule, listed
from mpcs_torch.evaluation.files.decision_columns import paired_decision
from mpcs_torch.evaluation.files.facts import Facts
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.label_columns import LabelColumns, label_candidates
from mpcs_torch.evaluation.files.offers import ReadingMeasure, UnclearFileError, offered
from mpcs_torch.evaluation.files.readings import clear_readings, find_readings
from mpcs_torch.evaluation.files.roles import UNNAMED, Reading, Roles
from mpcs_torch.evaluation.files.score_scale import nominal_sum
from mpcs_torch.evaluation.files.stacked_models import refuse_stacked
from mpcs_torch.evaluation.files.tables import Kind, to_text
from mpcs_torch.evaluation.files.words import (
    LABELS,
    POSITIVE,
    SPLITS,
    TOTAL_NAMES,
    is_label,
    is_predicted,
    named_as,
)

MAX_DESCRIBED = 12
"""The maximum number of columns that an error describes."""
OF_ROWS = frozenset(("sums", "no_class", "target_words"))
"""The rules for rows: if only one reading is named, the error for its first bad row says more than one for the file."""
KINDS: Mapping[Kind, str] = {
    "empty": "empty",
    "text": "text",
    "nested": "lists or dictionaries",
    "whole": "whole numbers",
    "number": "numbers",
    "list": "lists of numbers",
}


def choose(facts: Facts, measure: ReadingMeasure | None) -> Roles:
    """Return the roles of the columns by the reading of a file that is clear.

    Args:
        facts: The facts of the file.
        measure: The function that tries offers; None to raise errors without offers, as within a trial.

    Raises:
        UnclearFileError: If no reading is clear, or several are.
    """
    other = _other_form(facts)
    if other is not None:
        raise UnclearFileError(facts.table.path, other)
    readings = find_readings(facts)
    chosen = clear_readings(readings)
    if len(chosen) != 1 and measure is not None:
        of_all = facts.of_all()
        has_more_rows = of_all is not facts
        if has_more_rows:
            facts = of_all
            readings = find_readings(facts)
            chosen = clear_readings(readings)
    if len(chosen) != 1:
        error = _unclear(facts, readings, chosen, measure)
        named = [reading for reading in readings if reading.strength > UNNAMED]
        # A single reading that one row breaks is taken, so that reading the rows names this row.
        is_left_to_rows = len(named) == 1 and _is_broken_by_a_row(named[0])
        has_offers = len(error.offers) > 0
        if measure is None or has_offers or not is_left_to_rows:
            raise error
        chosen = named
    roles = chosen[0].roles
    refuse_stacked(facts, roles, measure)
    if facts.of_trials:
        return roles
    used = {*roles.scores, *roles.truth, roles.label}
    unused = [name for name in facts.free if name not in used]
    remarks = [
        str(Rule("splits", column=name, names=sorted(facts.all_texts(name))))
        for name in facts.by_kind(unused, "text")
        if {*map(str.lower, facts.texts(name))} <= SPLITS and len(facts.all_texts(name)) > 1
    ]
    roles = roles._replace(remarks=remarks)
    first = facts.matrix(roles.scores)
    if roles.form == "decisions":
        codes = ("sums", "unordered", "beyond")
        failed = [
            one
            for one in readings
            if one.broken and one.broken.code in codes and not {*one.roles.scores} & used
        ]
        if failed:  # the remark names its columns
            roles = roles._replace(remarks=[*remarks, str(failed[0].broken)])
            unused = [name for name in unused if name not in failed[0].roles.scores]
        return roles._replace(unused=unused, first_scores=first)
    decisions = [
        one.roles.scores[0]
        for one in readings
        if one.is_clear and one.roles.form == "decisions"
    ]
    decided = paired_decision(roles.scores[0], [*dict.fromkeys(decisions)])
    return roles._replace(unused=unused, first_scores=first, decided=decided)


def _is_broken_by_a_row(reading: Reading) -> bool:
    return reading.broken is not None and reading.broken.code in OF_ROWS


def _unclear(
    facts: Facts,
    readings: Sequence[Reading],
    chosen: Sequence[Reading],
    measure: ReadingMeasure | None,
) -> UnclearFileError:
    """Return the error for a file without one clear reading."""
    path, ranked = facts.table.path, sorted(readings, key=lambda one: _order(one, chosen))
    misplaced = [name for name in facts.options.columns if is_label(name)]
    if not readings and misplaced:
        return UnclearFileError(path, Rule("both", column=misplaced[0]))
    offers, untried = offered(facts, ranked, chosen, measure)
    problem = Rule("several")
    further: list[object] = []
    if offers and not chosen:
        # A way without a doubt is not taken because of a stronger one, which breaks a rule.
        problems = [one.doubt or one.broken for one in (offers[0][0], *ranked)]
        problem = next(filter(None, problems), problem)
    elif not chosen:
        problem = _problem(facts, ranked)
    if not offers:
        further = _described(facts, ranked, problem)
    return UnclearFileError(path, problem, [offer for _, offer in offers], further, untried)


def _problem(facts: Facts, ranked: Sequence[Reading]) -> Rule:
    """Return what keeps a file from being read: the doubt of the best reading, or the rule that it breaks."""
    named = [one for one in ranked if one.strength > UNNAMED]
    doubts = [one.doubt for one in named if one.doubt is not None and one.broken is None]
    if doubts:
        return doubts[0]
    if named and named[0].broken is not None:
        return named[0].broken
    if facts.of_trials and MATRIX in facts.table.dialect:
        return Rule("labels_of_matrix")
    labels = label_candidates(facts) if facts.needs_labels else [LabelColumns()]
    has_labels = any(each.is_named or facts.of_trials for each in labels)
    nested = _nested(facts)
    if nested and has_labels:  # the scores may be in it
        return nested[0]
    if facts.of_trials:
        return Rule("no_trial_scores" if has_labels else "no_trial_labels")
    return Rule("no_scores" if has_labels else "no_labels")


def _nested(facts: Facts) -> list[Rule]:
    """Return the problem with each column of lists or dictionaries, which has no role."""
    return [
        Rule("nested", column=name, value=next(filter(None, facts.columns[name].labels)))
        for name in facts.by_kind(facts.free, "nested")
    ]


def _order(
    reading: Reading, chosen: Sequence[Reading]
) -> tuple[bool, int, bool, bool, bool]:
    """Return a sort key that puts the readings first that names and values support most."""
    is_of_decision = reading.doubt is not None and reading.doubt.code == "above_half"
    is_broken = reading.broken is not None
    # Where no name tells the labels, that of a prediction still tells what was predicted.
    scores = reading.roles.scores
    is_unsaid = not named_as(scores, POSITIVE) and not any(map(is_predicted, scores))
    return reading not in chosen, -reading.strength, is_broken, is_of_decision, is_unsaid


def _described(facts: Facts, ranked: Sequence[Reading], problem: Rule) -> list[object]:
    """Describe the columns, and the ways to read them that come closest, for an error without offers.

    The ``problem`` is what the error begins with, so no way repeats it.
    """
    names = facts.table.names
    lines: list[object] = ["it has no header"]
    if facts.table.has_names:
        lines = [f"it has {listed(names, MAX_DESCRIBED)}"]
    for name in names[:MAX_DESCRIBED]:
        values = list(dict.fromkeys(map(to_text, facts.columns[name].values)))
        kind = KINDS[facts.kind(name)]
        lines.append(f"  {listed([name])}: {kind}, such as {listed(values, 3)}")
    classes = facts.class_names or ()
    having = {place for name in names for place in facts.named_class(name, classes)}
    lacking = [name for place, name in enumerate(classes) if place not in having]
    if lacking and facts.table.has_names:
        lines.append(f"there is no column for {listed(lacking, 5)}")
    known = [problem]
    broken = [one.broken for one in ranked if one.broken is not None]
    for rule in [*broken[:3], *_nested(facts)[:1]]:
        if rule not in known:
            known.append(rule)
    options = "--label-column, --score-columns, --decision-column and --classes"
    if facts.of_trials:
        options = "--label-column, --score-column and --target-label"
    options += " name what names and values do not tell"
    return [*lines, *known[1:], options]


def _other_form(facts: Facts) -> Rule | None:
    """Return the problem that a file has another form than a row for each sample, and a value in each cell."""
    names = facts.table.names
    if _is_confusion(facts):
        return Rule("confusion")
    if len(names) == 1 and re.search("[,;\t]", names[0]):
        return Rule("quoted_lines", column=names[0])
    nested = facts.by_kind(facts.free, "nested")
    for name in named_as(nested, LABELS):
        if len(nested) > 1:
            return Rule("many_rows", column=name, columns=nested)
    if facts.options.label_column:
        return None
    lists = facts.by_kind(facts.free, "list")
    # The numbers of other libraries, as in [np.int64(0)], are texts.
    texts = [
        name for name in facts.by_kind(facts.free, "text") if _is_printed_list(facts, name)
    ]
    if len(lists) + len(texts) < 2:
        return None
    for name in filter(is_label, lists):
        numbers = facts.columns[name].numbers
        has_lengths = np.isnan(numbers).any()
        is_whole = len(numbers) < numbers.shape[1] and (numbers % 1 == 0).all()
        if has_lengths or (is_whole and (numbers.sum(axis=1) != 1).any()):
            return Rule("many_rows", column=name, columns=[*lists, *texts])
    return None


def _is_printed_list(facts: Facts, name: str) -> bool:
    """Return whether each text of a column is in brackets."""
    labels = [text for text in facts.columns[name].labels if text]
    return bool(labels) and all(text[0] + text[-1] == "[]" for text in labels)


def _is_confusion(facts: Facts) -> bool:
    """Return whether the first column names the rows as the header names the other columns, which have counts."""
    table, options = facts.table, facts.options
    is_asked = options.label_column or options.score_columns
    if not table.has_names or len(table.names) < 3 or is_asked:
        return False
    first, *others = table.names
    rows = [to_text(value) for value in facts.columns[first].values]
    names = [name for name in others if name.lower() not in TOTAL_NAMES]
    is_square = [row for row in rows if row.lower() not in TOTAL_NAMES] == names
    if not is_square or len(facts.by_kind(others, "whole")) < len(others):
        return False
    sums = facts.matrix(names).sum(axis=1)
    return nominal_sum(sums, len(names)) is None  # else each row has probabilities
