"""Files with one column of scores or of predicted labels: lists, one probability, decisions."""

import re
from collections.abc import Sequence

import numpy as np

from mpcs_torch.concern.rules import MAX_CLASSES
from mpcs_torch.errors import quoted, shown
from mpcs_torch.evaluation.files.roles import OpenColumns, Roles, label_text, number_or_text
from mpcs_torch.evaluation.files.tables import choices, distinct_texts, listed, number_of, numbers_in
from mpcs_torch.evaluation.files.words import DENIALS, MISSING, REFERRAL, polarity_of, words_of


def refuse_predicted(columns: OpenColumns, score: str, label: str | None) -> None:
    """Refuse one score beside a column that has the values of the labels: the score may be that of this class."""
    labels = set() if label is None else columns.texts(label)
    others = [name for name in columns.of_kind("text", "whole") if columns.texts(name) <= labels]
    if others and len(labels) > 1:
        problem = f"has one score {quoted(score)}, and {quoted(others[0])} with the values of the labels"
        ways = f"--decision-column {others[0]} measures it, --score-columns {score} the probability of a class"
        raise columns.error(f"{problem}: {ways}")


def refuse_scores_of(columns: OpenColumns, classes: set[str], decision: str) -> None:
    """Refuse predicted labels beside columns of numbers that are named after them."""
    words = [name.lower() for name in classes if number_of(name) is None and len(name) > 1]
    named = [name for name in columns.of_kind("number", "whole") if any(word in name.lower() for word in words)]
    if named:
        ways = f"--decision-column {decision} measures the labels, --score-columns names the scores"
        problem = f"has predicted labels {quoted(decision)}, and {listed(named)}, maybe scores that do not sum to 1"
        raise columns.error(f"{problem}: {ways}")


def first_list(columns: OpenColumns, name: str) -> Sequence[float]:
    """Return the first list of a column; empty if there is none."""
    return next((numbers for value in columns.values[name] if (numbers := numbers_in(value))), ())


def roles_of_lists(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return one column of lists, whose classes are numbered, from 0 or from 1 as the first labels are, or named."""
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
    """Return the numbers of classes whose scores have no names; refuse labels that are names."""
    if label is not None and columns.kinds[label] == "text":
        words = ",".join(sorted(columns.texts(label)))
        problem = "has scores without names, and labels that are names: which score is of which class?"
        raise columns.error(f"{problem} --classes {words} names the classes in their order")
    first = first_number(columns, label, size)
    return [str(number) for number in range(first, first + size)]


def first_number(columns: OpenColumns, label: str | None, size: int) -> int:
    """Return the number of the first class, 0 or 1, by the labels; refuse labels without the first and the last one."""
    if label is None or columns.kinds[label] != "whole" or columns.table.counts_from_0:
        return 0
    for texts in (columns.texts(label), None):
        numbers = {number_of(each) for each in texts or distinct_texts(columns.table, [label], MAX_CLASSES)}
        if 0.0 in numbers or float(size) in numbers:
            return int(0.0 not in numbers)
    if columns.class_names is not None:
        return 0
    ways = choices("--classes", [",".join(map(str, range(first, first + size))) for first in (0, 1)])
    raise columns.error(f"is never 0 and never {size}, so the first class may be 0 or 1: {ways}", column=label)


def roles_of_positive(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return one column with the probability of a class: the one that its name says, else the positive class."""
    classes = columns.class_names
    if classes is None:
        if label is None:
            raise columns.error("one column of scores needs labels: --label-column COLUMN")
        classes = sorted({label_text(text) for text in distinct_texts(columns.table, [label], 2)}, key=number_or_text)
        words = [polarity_of(text) for text in classes]
        if len(classes) == 1 and classes[0] in ("0", "1"):
            classes, words = ["0", "1"], [0, 1]
        elif {*words} == {0, 1}:
            classes = [text for _, text in sorted(zip(words, classes, strict=True), key=lambda pair: pair[0] or 0)]
        elif len(classes) != 2 or _named_class(name, classes) is None:
            negative, positive = (*classes, "NAME")[:2]
            which = f"has one score and the labels {listed(classes)}: which is the positive class?"
            raise columns.error(f"{which} --classes {negative},{positive} makes it {positive}", column=name)
    if len(classes) != 2:
        raise columns.error(f"has one score for each row, but there are {len(classes)} classes", column=name)
    of_class = _named_class(name, classes)
    if of_class is None and {*words_of(name)} & DENIALS and not columns.options.classes:
        problem = f"may be the probability of {shown(classes[0])} or of {shown(classes[1])}"
        ways = choices("--classes", [",".join(pair) for pair in (classes, classes[::-1])])
        raise columns.error(f"{problem}: {ways}, whose last class it is", column=name)
    scores, is_chosen = columns.matrix([name]), bool(columns.options.score_columns or columns.options.from_logits)
    is_high = len(scores) > 3 and scores.min() >= 0.5 and (label is None or len(columns.texts(label)) == 2)
    if is_high and not is_chosen:
        other = "" if label is None else f"{quoted(label)} may be the predicted label, and "
        problem = f"has no score below 0.5, so {other}{quoted(name)} may be the score of the predicted label"
        way = "give true labels with --labels FILE or --label-column COLUMN, the predicted ones with --decision-column"
        raise columns.error(f"{problem}: {way}, or pass --score-columns {name}")
    return Roles("positive", [name], tuple(classes), of_class=1 if of_class is None else of_class)


def _named_class(name: str, classes: Sequence[str]) -> int | None:
    """Return the number of the only class that the name of a column names, as a word, or as it is true or false."""
    words = words_of(re.sub(r"(?<=[a-z])(?=[01]$)", "_", name.lower()))
    named = [place for place, each in enumerate(classes) if each.lower() in words]
    kinds = {polarity_of(word) for word in words} - {None}
    if not named and len(kinds) == 1 and {polarity_of(each) for each in classes} == {0, 1}:
        named = [place for place, each in enumerate(classes) if polarity_of(each) in kinds]
    return named[0] if len(named) == 1 else None


def roles_of_decisions(columns: OpenColumns, label: str | None, decision: str) -> Roles:
    """Return a column of predicted labels; its classes are all of its values and of the labels."""
    if columns.class_names is not None:
        return Roles("decisions", [decision], tuple(columns.class_names))
    names = [decision, *([] if label is None else [label])]
    of_columns = [{label_text(text) for text in distinct_texts(columns.table, [name], MAX_CLASSES)} for name in names]
    classes = sorted(set.union(*of_columns), key=number_or_text)
    missing = [name for name in classes if name.lower() in MISSING]
    numbers = [number for name in classes if (number := number_of(name)) is not None]
    some = f"--classes {','.join(classes[:5])}{',...' if len(classes) > 5 else ''} names all classes"
    if REFERRAL in classes:
        problem = "has referrals: --concern FILE says what they cost, and names the classes and answers"
    elif missing and columns.options.missing == "error":
        problem = f"has {quoted(missing[0])}: --missing drop leaves such rows out, or, if it is a class, {some}"
    elif of_columns[0].isdisjoint(of_columns[-1]) and len(of_columns[-1]) > 1:
        problem = f"has predicted labels {listed(sorted(of_columns[0]))}, of which none is a label: write them alike"
    elif any(number % 1 for number in numbers) or (
        columns.kinds[decision] == "whole" and 0 < len(numbers) < len(classes)
    ):
        problem = f"has values of several kinds, {listed(classes)}: {some}"
    else:
        return Roles("decisions", [decision], tuple(name for name in classes if name not in missing))
    raise columns.error(problem, column=decision)
