"""Assign roles in files with a single column of scores (lists, or one probability) or of predicted labels."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from mpcs_torch.concern.checks import MAX_CLASSES, REFERRAL
from mpcs_torch.errors import quoted, shown
from mpcs_torch.evaluation.files.file_errors import PredictionsError
from mpcs_torch.evaluation.files.open_columns import OpenColumns, Roles, label_text, number_or_text
from mpcs_torch.evaluation.files.tables import choices, distinct_texts, is_gap, listed, number_of, numbers_in, way
from mpcs_torch.evaluation.files.words import DENIALS, MISSING, polarity_of, words_of


def refuse_predicted(columns: OpenColumns, score: str, label: str | None) -> None:
    """Refuse a single score beside a second column of labels, because it may be the score of the label there."""
    labels = set() if label is None else columns.texts(label)
    others = [name for name in columns.of_kind("text", "whole") if columns.texts(name) <= labels]
    if others and len(labels) > 1:
        problem = f"has one score {quoted(score)}, and {quoted(others[0])} with the values of the labels"
        ways = f"{way('--decision-column', others[:1])} measures it, {way('--score-columns', [score])} the probability"
        raise columns.error(f"{problem}: {ways} of a class")


def refuse_labels_beside_scores(columns: OpenColumns, classes: set[str], decision: str) -> None:
    """Refuse predicted labels beside columns of numbers that are named after the classes."""
    words = [name.lower() for name in classes if number_of(name) is None and len(name) > 1]
    named = [name for name in columns.of_kind("number", "whole") if any(word in name.lower() for word in words)]
    if named:
        ways = f"{way('--decision-column', [decision])} measures the labels, --score-columns names the scores"
        problem = f"has predicted labels {quoted(decision)}, and {listed(named)}, maybe scores that do not sum to 1"
        raise columns.error(f"{problem}: {ways}")


def first_list(columns: OpenColumns, name: str) -> Sequence[float]:
    """Return the first list of numbers in a column; empty if there is none."""
    return next((numbers for value in columns.values[name] if (numbers := numbers_in(value))), ())


def list_roles(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return the roles of a file with one column of lists; if the classes are not known, they are numbers."""
    size = len(first_list(columns, name))
    if size > MAX_CLASSES:
        raise columns.error(f"must have at most {MAX_CLASSES} classes, but has {size}")
    classes = columns.class_names
    if classes is not None and len(classes) != size:
        raise columns.error(f"has lists of {size} scores, but there are {len(classes)} classes", column=name)
    lists = columns.matrix([name])
    falls = (np.diff(lists, axis=1) <= 0).all(axis=1) & (lists[:, 0] > lists[:, -1])
    if len(falls) >= 20 and size > 2 and all(falls) and not columns.table.counts_from_0:
        problem = "has lists that always fall: of the best classes of each row?"
        way = "A score for each class is needed, in one order; --decision-column measures the best one"
        raise columns.error(f"{problem} {way}", column=name)
    return Roles("lists", [name], tuple(classes or classes_by_place(columns, label, size)))


def classes_by_place(columns: OpenColumns, label: str | None, size: int) -> list[str]:
    """Return the numbers of the classes, as texts, for scores without names; refuse labels that are words."""
    if label is not None and columns.kinds[label] == "text":
        problem = "has scores without names, and labels that are names: which score is of which class?"
        ways = f"{way('--classes', sorted(columns.texts(label)))} names the classes in their order"
        raise columns.error(f"{problem} {ways}")
    is_number = label is not None and columns.kinds[label] == "whole"
    first = first_number(columns, [label], size) if label is not None and is_number else 0
    return [str(number) for number in range(first, first + size)]


def first_number(columns: OpenColumns, names: Sequence[str], size: int, scores: Sequence[str] = ()) -> int:
    """Return the number of the first class: 0 if a label is 0, else 1 if a label is the number of classes.

    If no label is 0 or that number, arrays count from 0, and most other files are refused as ambiguous.
    """
    for texts in (set[str]().union(*map(columns.texts, names)), None):
        known = distinct_texts(columns.table, names, MAX_CLASSES) if texts is None else texts
        by_number = {number: label_text(each) for each in known if (number := number_of(each)) is not None}
        numbers = sorted(by_number)
        if 0 in numbers or size in numbers:
            return int(0 not in numbers)
    is_other = any(number < 0 or number > size for number in numbers)
    if is_other and len(numbers) == size:
        readings = [[by_number[number] for number in numbers]]
        problem = f"has the labels {listed(readings[0])}, which are no numbers from 0 or 1"
    elif is_other or columns.table.counts_from_0:
        return 0
    else:
        readings = [[*map(str, range(first, first + size))] for first in (0, 1)]
        problem = f"is never 0 and never {size}, so the first class may be 0 or 1"
    ways = choices("--classes", readings)
    beside = f", with {way('--score-columns', scores)}" if scores else ""
    raise columns.error(f"{problem}: {ways}{beside}", column=names[0])


def positive_roles(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return the roles for one score per row, that of the class in the column's name or else of the positive class."""
    classes, options = columns.class_names, columns.options
    if classes is None:
        if label is None:
            raise columns.error("one column of scores needs labels: --label-column COLUMN")
        classes = _two_labels(columns, name, label)
    if len(classes) != 2:
        raise columns.error(f"has one score for each row, but there are {len(classes)} classes", column=name)
    scores, last = columns.matrix([name]), shown(classes[1])
    has_sign = any(str(value).strip().endswith("%") for value in columns.values[name])
    is_beyond = bool(len(scores)) and scores.max() > 1
    is_percent = has_sign or (is_beyond and ("%" in name or "percent" in name.lower()))
    is_high = len(scores) > 3 and scores.min() >= (50 if is_percent else 0.5) and (is_percent or not is_beyond)
    if is_high and (label is None or len(columns.texts(label)) > 1) and not (options.classes or options.from_logits):
        other = "" if label is None else f"{quoted(label)} may be the predicted label, and "
        problem = f"has no score below 0.5, so {other}{quoted(name)} may be the score of the predicted label"
        ways = "give true labels with --labels FILE or --label-column COLUMN, the predicted ones with --decision-column"
        confirmed = f"{way('--classes', classes)} confirms that it is the probability of {last}"
        raise columns.error(f"{problem}: {ways}, or {confirmed}")
    of_class = next((place for names in (columns.called, classes) for place in _named_class(name, names)), None)
    is_known = columns.class_names is not None or [polarity_of(text) for text in classes] == [0, 1]
    if of_class is None and not is_known:
        problem = f"has one score and the labels {listed(classes)}: which is the positive class?"
        raise columns.error(f"{problem} {way('--classes', classes)} makes it {last}", column=name)
    if of_class is None and {*words_of(name)} & DENIALS and not options.classes:
        problem = f"may be the probability of {shown(classes[0])} or of {last}"
        ways = choices("--classes", (classes, classes[::-1]))
        raise columns.error(f"{problem}: {ways}, whose last class it is", column=name)
    of_class = 1 if of_class is None else of_class
    return Roles("positive", [name], tuple(classes), of_class=of_class, is_percent=is_percent)


def _two_labels(columns: OpenColumns, score: str, label: str) -> list[str]:
    """Return the two labels in a file with one score, the positive class last; refuse further labels."""
    table = columns.table
    known = {label_text(text) for text in distinct_texts(table, [label], MAX_CLASSES)}
    classes = known if len(known) <= 2 else {text for text in known if not is_gap(text)}
    if classes <= {"0", "1"}:
        return ["0", "1"]
    if len(classes) <= 2:
        one, two = [*sorted(classes, key=number_or_text), "NAME"][:2]
        if len(classes) == 1:
            ways = f"{way('--classes', [one, two])} makes {two} the positive class"
            raise columns.error(f"has one score and the label {shown(one)} alone: {ways}", column=score)
        return [two, one] if [polarity_of(one), polarity_of(two)] == [1, 0] else [one, two]
    rows = [label_text(value) for value in table.read([label]).columns[label].to_pylist()]
    rare, count = Counter(text for text in rows if text in classes).most_common()[-1]
    problem = f"is {quoted(rare)} in {count} of {len(rows)} rows, the rarest of {len(classes)} labels"
    ways = f"but one score {quoted(score)} tells two apart: leave out rows with others, or name more by --score-columns"
    raise PredictionsError(table.path, f"{problem}, {ways}", row=rows.index(rare) + 1, column=label)


def _named_class(name: str, classes: Sequence[str]) -> list[int]:
    """Return a list with the number of the class in a column's name (by class name, or a word like positive), or []."""
    words = words_of(re.sub(r"(?<=[a-z])(?=[01]$)", "_", name.lower()))
    named = [place for place, each in enumerate(classes) if each.lower() in words]
    kinds = {polarity_of(word) for word in words} - {None}
    if not named and len(kinds) == 1 and {polarity_of(each) for each in classes} == {0, 1}:
        named = [place for place, each in enumerate(classes) if polarity_of(each) in kinds]
    return named if len(named) == 1 else []


def decision_roles(columns: OpenColumns, label: str | None, decision: str) -> Roles:
    """Return the roles of a file of predicted labels. By default, the classes are all predicted and true labels."""
    if columns.class_names is not None:
        return Roles("decisions", [decision], tuple(columns.class_names))
    names = [decision, *([] if label is None else [label])]
    of_columns = [{label_text(text) for text in distinct_texts(columns.table, [name], MAX_CLASSES)} for name in names]
    classes = sorted(set.union(*of_columns), key=number_or_text)
    missing = [name for name in classes if name.lower() in MISSING]
    numbers = [number for name in classes if (number := number_of(name)) is not None]
    some = f"{way('--classes', classes)} names all classes"
    cases = Counter(name.lower() for name in classes)
    twins, column = [name for name in classes if cases[name.lower()] > 1], decision
    if REFERRAL in classes:
        problem = "has referrals: --concern FILE says what they cost, and names the classes and answers"
    elif missing and columns.options.missing == "error":
        column = names[missing[0] not in of_columns[0]]
        problem = f"has {quoted(missing[0])}: --missing drop leaves such rows out, or, if it is a class, {some}"
    elif of_columns[0].isdisjoint(of_columns[-1]) and len(of_columns[-1]) > 1:
        problem = f"has predicted labels {listed(sorted(of_columns[0]))}, of which none is a label: write them alike"
    elif twins:
        problem = f"has {listed(twins)}, which differ in case alone: write them alike, or, if all are classes, {some}"
    elif any(number % 1 for number in numbers) or (
        columns.kinds[decision] == "whole" and 0 < len(numbers) < len(classes)
    ):
        problem = f"has values of several kinds, {listed(classes)}: {some}"
    else:
        return Roles("decisions", [decision], tuple(name for name in classes if name not in missing))
    raise columns.error(problem, column=column)
