"""Find the columns of scores or of predicted labels in a table, by their names and by the sums of rows."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from mpcs_torch.concern.checks import MAX_CLASSES, REFERRAL
from mpcs_torch.errors import quoted, shown
from mpcs_torch.evaluation.files.open_columns import (
    NUMBERED,
    SEPARATOR,
    OpenColumns,
    Roles,
    classes_by_place,
    label_text,
    nominal_sum,
    number_or_text,
    numbered_families,
    span,
    split_truth,
)
from mpcs_torch.evaluation.files.reading import PredictionsError
from mpcs_torch.evaluation.files.tables import (
    choices,
    distinct_texts,
    is_gap,
    listed,
    numbers_in,
    to_number,
    to_text,
    way,
)
from mpcs_torch.evaluation.files.words import (
    DECISION,
    DENIALS,
    LABELS,
    MISSING,
    NO_PROBABILITY,
    POSITIVE,
    is_index,
    named_as,
    plain,
    split_words,
    target_or_not,
)

SCORES = POSITIVE | {"softmax", "conf", "confidence"} - {"distance", "similarity", "cosine"}
"""Words that may stand before or after the class name in the name of a column of scores, such as ``prob_red``."""
BEFORE, AFTER = rf"(?:(?<=^)|(?<={SEPARATOR.pattern})|(?<=\())", rf"(?=$|\)|{SEPARATOR.pattern})"
"""Patterns that match where a class name may begin and end within the name of a column."""


def assign_scores(columns: OpenColumns, label: str | None, truth: Mapping[str, str], decisions: Sequence[str]) -> Roles:
    """Return the columns of scores and their classes; in a file without scores, the column of predicted labels.

    ``label`` is the column of labels, ``decisions`` are columns named as predicted labels, and ``truth`` maps each
    class to its column of soft labels.
    """
    options, table = columns.options, columns.table
    is_written = decisions == [DECISION] and columns.is_written and not options.score_columns
    if options.decision_column is not None or is_written:
        return decision_roles(columns, label, decisions[0])
    columns.exclude(decisions)
    columns.exclude([] if label is None else [name for name in columns.by_kind("whole") if split_truth(name)])
    columns.exclude(columns.by_kind("text", "whole", "empty", among=[name for name in columns.open if is_index(name)]))
    if options.score_columns:
        return _chosen(columns, label)
    lists = [name for name in columns.by_kind("list") if truth or len(first_list(columns, name)) > 1]
    readings = list(_readings(columns, label, truth))
    passing = [reading for reading in readings if truth or _fits(columns, reading)]
    if decisions:  # whole numbers are then features or one-hot labels, not scores
        passing = [one for one in passing if columns.by_kind("number", among=one.scores)]
    words = _words(columns, label)
    passing = [reading for reading in passing if words <= {*reading.classes}] or passing
    numbered = [reading for reading in passing if reading.is_numbered]
    if not options.from_logits:  # prefer the larger set: a class whose scores are 0 changes no sum
        passing = _largest(passing)
    by_columns = dict[frozenset[str], Roles]()
    for one in numbered or passing:
        by_columns.setdefault(frozenset(one.scores), one)
    passing = list(by_columns.values())
    if len(passing) + len(lists) > 1:
        _refuse_both(columns, [*(reading.scores for reading in passing), *((name,) for name in lists)])
    if passing:
        _refuse_best(columns, passing[0])
        return passing[0]
    if lists:
        return list_roles(columns, lists[0], label)
    bad, others = _bad_number(columns), columns.by_kind("number", "whole", "empty")
    known = [name for name in others if not {*split_words(name)} & NO_PROBABILITY]
    words_for = POSITIVE | LABELS if table.joined else POSITIVE
    positive = columns.by_kind("number", "whole", among=named_as(known, words_for))
    if not positive and len(others) == 1 and not bad:
        positive = [name for name in columns.by_kind("number", among=known) if {*split_words(name)} & POSITIVE]
    is_binary = len(columns.class_names or ()) == 2 if label is None else len(columns.texts(label)) <= 2
    is_binary |= label is not None and not readings and len(columns.class_names or "ab") == 2
    if is_binary and not decisions and positive:
        if len(positive) > 1:
            _refuse_both(columns, [(name,) for name in positive])
        refuse_predicted(columns, positive[0], label)
        return positive_roles(columns, positive[0], label)
    if decisions and (label is not None or not readings):
        if len(decisions) > 1:
            ways = choices("--decision-column", decisions[:2])
            raise columns.error(f"has several columns of predicted labels, {listed(decisions)}: {ways}")
        refuse_labels_beside_scores(columns, words | columns.texts(decisions[0]), decisions[0])
        return decision_roles(columns, label, decisions[0])
    if readings:
        return _only(columns, readings)
    missing = [name for name in columns.class_names or () if name not in columns.open]
    without = f"; there is no column for {listed(missing, 5)}" if missing else ""
    problem = f"has no columns of scores or predicted labels that are known by their names; {table.it_has()}"
    raise columns.error(f"{problem}: name them by --score-columns or --decision-column{without}{bad}")


def _largest(readings: Sequence[Roles]) -> list[Roles]:
    """Return the readings whose columns are no proper subset of the columns of another reading."""
    having = defaultdict[str, list[set[str]]](list)
    for reading in readings:
        columns = {*reading.scores}
        for name in columns:
            having[name].append(columns)
    return [one for one in readings if not any({*one.scores} < columns for columns in having[one.scores[0]])]


def _fits(columns: OpenColumns, reading: Roles) -> bool:
    """Return whether the scores in ``reading`` sum to about 1 or 100 in the first rows; always True for logits."""
    matrix = columns.matrix(reading.scores)
    is_whole = matrix.size > 0 and matrix.min() >= 0 and nominal_sum(matrix.sum(axis=1), matrix.shape[1]) is not None
    return columns.options.from_logits or is_whole


def _refuse_best(columns: OpenColumns, reading: Roles) -> None:
    """Raise an error if the scores seem to be those of the best classes of each row, not those of fixed classes.

    For example, the scores are in the columns score1 and score2, and the columns top1 and top2 name the classes.
    """
    scores = {*reading.scores}
    numbers = {match[2] for name in scores if (match := NUMBERED.fullmatch(name))}
    families = defaultdict[tuple[str, str], set[str]](set)
    for name in columns.by_kind("whole", "text", among=columns.table.names):
        if (match := NUMBERED.fullmatch(name)) and name not in scores:
            families[match[1], match[3]].add(match[2])
    matrix = columns.matrix(reading.scores)
    other = next((before for (before, _), given in families.items() if given == numbers), None)
    if reading.is_numbered and other is not None and len(matrix) and bool((np.diff(matrix, axis=1) <= 0).all()):
        problem = f"has falling scores {span(reading.scores)} beside {other}1, ...: of the best classes of each row?"
        raise columns.error(f"{problem} A column for each class is needed; --decision-column measures the best one")


def _only(columns: OpenColumns, readings: Sequence[Roles]) -> Roles:
    """Return the first of ``readings``; raise an error if they have different columns, unless the classes are known."""
    names = columns.class_names
    if names is not None or len({reading.scores for reading in readings}) == 1:
        return readings[0]
    whole = next((one for one in readings if not columns.by_kind("whole", among=one.scores)), None)
    by_size = sorted(readings, key=lambda reading: len(reading.scores))
    one = next((one for one in readings if one.is_numbered), whole) or by_size[0]
    other = [name for name in by_size[-1].scores if name not in one.scores]
    sums = columns.matrix(one.scores).sum(axis=1)
    some = way("--score-columns", one.scores)
    raise columns.error(
        f"has columns of numbers {span(one.scores)}, of which the first row sums to {sums[0] if len(sums) else 0:g}, "
        f"and {listed(other)}: which are scores of classes? {some} names them "
        "(for logits pass --logits, too)",
    )


def _readings(columns: OpenColumns, label: str | None, truth: Mapping[str, str]) -> Iterator[Roles]:
    """Yield the `Roles` of each set of columns that may have the scores of the classes."""
    filled = columns.by_kind("number", "whole", "empty")  # the scores of a class may be missing in the first rows
    known = [name for name in filled if not {*split_words(name)} & {"distance", "dist", "loss"}]
    numeric, fractions = (columns.by_kind("number", *kinds, among=known) for kinds in (("whole",), ()))
    classes = columns.class_names
    if classes is not None:
        named = list(_by_known_class(columns, known))
        groups = [each for each, _ in numbered_families(known)] if columns.table.has_names else [numeric, fractions]
        fitting = [Roles("columns", tuple(each), tuple(classes), is_numbered=True) for each in groups]
        yield from named or [reading for reading in fitting if len(reading.scores) == len(classes)]
        return
    if truth:
        of_truth = list(truth) if len(truth) > 1 or columns.kinds[next(iter(truth.values()))] != "list" else []
        numbered = [Roles("columns", *each) for each in numbered_families(numeric) if {*each[1]} == {*of_truth}]
        found = (list(by_class(numeric, of_truth)) or numbered) if of_truth else []
        yield from found or ([Roles("columns", tuple(numeric), tuple(numeric))] if numeric else [])
        return
    families = list(numbered_families(known))
    for family in families:
        yield Roles("columns", *family, is_numbered=True)
    words = sorted(_words(columns, label))
    for reading in by_class(numeric, words) if len(words) > 1 else ():
        class_by_column = dict(zip(reading.scores, words, strict=True))
        in_order = tuple(name for name in numeric if name in class_by_column)
        yield Roles("columns", in_order, tuple(class_by_column[name] for name in in_order))
    in_unit = [name for name in numeric if ((one := columns.matrix([name])).size and one.min() >= 0 and one.max() <= 1)]
    known_groups = {tuple(sorted(family)) for family, _ in families}
    for group in [numeric, in_unit, fractions, *_with_common_word(numeric)]:
        if len(group) < 2:
            continue
        names = _class_names(group, {*words})
        # A family such as grade0, grade1 has numbered classes, unless the labels are these names.
        if tuple(sorted(group)) not in known_groups or (words and {*words} <= {*names}):
            yield Roles("columns", tuple(group), names)


def _by_known_class(columns: OpenColumns, names: Sequence[str]) -> Iterator[Roles]:
    """Yield roles for columns in ``names`` that are named after the known classes, or the file's names for these."""
    classes = columns.class_names or ()
    named = list(by_class(names, classes)) or by_class(names, columns.called)
    return (reading._replace(classes=tuple(classes)) for reading in named)


def affixes(names: Iterable[str], class_name: str) -> list[tuple[str, str]]:
    """Return what stands before and after ``class_name`` in ``names`` that have it as a word, shortest first."""
    pattern = re.compile(f"{BEFORE}{re.escape(class_name)}{AFTER}")
    around = {(name[: at.start()], name[at.end() :]) for name in names for at in pattern.finditer(name)}
    return sorted(around, key=lambda pair: len(pair[0]) + len(pair[1]))


def by_class(names: Sequence[str], classes: Sequence[str]) -> Iterator[Roles]:
    """Yield roles for the columns PREFIX + class + SUFFIX of all ``classes``, shortest affixes first; ignore case."""
    if not classes or not classes[0]:
        return
    differs = all(len({name.lower() for name in some}) == len(some) for some in (names, classes))
    lower = {(name.lower() if differs else name): name for name in names}
    classes_in_case = [name.lower() if differs else name for name in classes]
    for before, after in affixes(lower, classes_in_case[0]):
        if all(f"{before}{name}{after}" in lower for name in classes_in_case):
            yield Roles("columns", tuple(lower[f"{before}{name}{after}"] for name in classes_in_case), tuple(classes))
            if not before and not after:
                return


def _words(columns: OpenColumns, label: str | None) -> set[str]:
    """Return the distinct labels in the first rows or, for logits, in all rows. Numbers give an empty set."""
    if label is None or columns.kinds[label] != "text":
        return set()
    is_of_all = columns.options.from_logits
    return distinct_texts(columns.table, [label], MAX_CLASSES) if is_of_all else columns.texts(label)


def _with_common_word(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield each group of columns whose names begin or end with the same word, such as ``prob`` or ``score``."""
    for place in (0, -1):
        groups = defaultdict[str, list[str]](list)
        for name in names:
            parts = SEPARATOR.split(name)
            if len(parts) > 1 and plain(parts[place]) in SCORES:
                groups[parts[place]].append(name)
        yield from groups.values()


def _class_names(names: Sequence[str], labels: set[str]) -> tuple[str, ...]:
    """Return the class of each column in ``names``: its name without a shared first or last word such as ``prob``."""
    if labels and labels <= {*names}:
        return tuple(names)
    for place in (0, -1):
        word, *others = {SEPARATOR.split(name)[place] for name in names}
        size = len(word) + 1
        short = [name[size:] if place == 0 else name[:-size] for name in names]
        is_score = plain(word) in SCORES
        if not others and all(short) and (is_score or (labels and labels <= {*short})):
            return tuple(short)
    return tuple(names)


def _chosen(columns: OpenColumns, label: str | None) -> Roles:
    """Return the score columns that ``--score-columns`` names, with their classes."""
    table, options, names = columns.table, columns.options, list[str]()
    for pattern in options.score_columns:
        matched = [name for name in columns.open if fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        table.check_columns(matched or [pattern], "--score-columns")
        names += [name for name in matched if name not in names]
    bad = next((name for name in names if columns.kinds[name] == "text"), None)
    if bad is not None:
        value = next(value for value in columns.values[bad] if to_text(value) and to_number(value) is None)
        raise columns.error(f"must be numbers, but has {quoted(value)}", column=bad)
    if len(names) == 1 and columns.kinds[names[0]] == "list":
        return list_roles(columns, names[0], label)
    if len(names) == 1:
        return positive_roles(columns, names[0], label)
    classes = columns.class_names
    if classes is not None:
        by_name = next(_by_known_class(columns, names), None) if columns.called or not options.classes else None
        if by_name is None and len(classes) != len(names):
            problem = f"has {len(names)} columns of scores, but there are {len(classes)} classes: {listed(classes)}"
            raise columns.error(problem)
        return by_name or Roles("columns", names, tuple(classes))
    family = next((family for family in numbered_families(names) if {*family[0]} == {*names}), None)
    if family is not None:
        return Roles("columns", *family)
    words = _words(columns, label)
    return Roles("columns", names, _class_names(names, words))


def _refuse_both(columns: OpenColumns, ways: Sequence[Sequence[str]]) -> None:
    problem = f"can be read in two ways: the scores are {span(ways[0])}, or {span(ways[1])}"
    raise columns.error(f"{problem}: {choices('--score-columns', ways[:2])}")


def _bad_number(columns: OpenColumns) -> str:
    """Return a part of an error message that quotes the first text among decimal numbers; empty if there is none."""
    for name in columns.by_kind("text"):
        values = columns.values[name]
        if any((to_number(value) or 0) % 1 for value in values):
            row = next(row for row, value in enumerate(values) if to_number(value) is None and to_text(value))
            return f"; row {row + 1} of {quoted(name)} is no number, but {quoted(values[row])}"
    return ""


def refuse_predicted(columns: OpenColumns, score: str, label: str | None) -> None:
    """Raise an error if another column has values of the labels: ``score`` may then be that of the predicted label."""
    labels = set() if label is None else columns.texts(label)
    others = [name for name in columns.by_kind("text", "whole") if columns.texts(name) <= labels]
    if others and len(labels) > 1:
        problem = f"has one score {quoted(score)}, and {quoted(others[0])} with the values of the labels"
        ways = f"{way('--decision-column', others[:1])} measures it, {way('--score-columns', [score])} the probability"
        raise columns.error(f"{problem}: {ways} of a class")


def refuse_labels_beside_scores(columns: OpenColumns, classes: set[str], decision: str) -> None:
    """Raise an error if columns of numbers are named after ``classes``: they may be scores beside predicted labels."""
    words = [name.lower() for name in classes if to_number(name) is None and len(name) > 1]
    named = [name for name in columns.by_kind("number", "whole") if any(word in name.lower() for word in words)]
    if named:
        ways = f"{way('--decision-column', [decision])} measures the labels, --score-columns names the scores"
        problem = f"has predicted labels {quoted(decision)}, and {listed(named)}, maybe scores that do not sum to 1"
        raise columns.error(f"{problem}: {ways}")


def first_list(columns: OpenColumns, name: str) -> Sequence[float]:
    """Return the first list of numbers in the column ``name``; empty if there is none."""
    return next((numbers for value in columns.values[name] if (numbers := numbers_in(value))), ())


def list_roles(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return roles for the column ``name``, which has lists of scores. Unknown classes are numbered."""
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


def positive_roles(columns: OpenColumns, name: str, label: str | None) -> Roles:
    """Return roles for ``name``, a column of one score per row: of the class in its name, or of the positive class."""
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
    is_known = columns.class_names is not None or [target_or_not(text) for text in classes] == [0, 1]
    if of_class is None and not is_known:
        problem = f"has one score and the labels {listed(classes)}: which is the positive class?"
        raise columns.error(f"{problem} {way('--classes', classes)} makes it {last}", column=name)
    if of_class is None and {*split_words(name)} & DENIALS and not options.classes:
        problem = f"may be the probability of {shown(classes[0])} or of {last}"
        ways = choices("--classes", (classes, classes[::-1]))
        raise columns.error(f"{problem}: {ways}, whose last class it is", column=name)
    of_class = 1 if of_class is None else of_class
    return Roles("positive", [name], tuple(classes), of_class=of_class, is_percent=is_percent)


def _two_labels(columns: OpenColumns, score: str, label: str) -> list[str]:
    """Return the two labels in the column ``label``, the positive class last; raise an error for more labels."""
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
        return [two, one] if [target_or_not(one), target_or_not(two)] == [1, 0] else [one, two]
    rows = [label_text(value) for value in table.read([label]).columns[label].to_pylist()]
    rare, count = Counter(text for text in rows if text in classes).most_common()[-1]
    problem = f"is {quoted(rare)} in {count} of {len(rows)} rows, the rarest of {len(classes)} labels"
    ways = f"but one score {quoted(score)} tells two apart: leave out rows with others, or name more by --score-columns"
    raise PredictionsError(table.path, f"{problem}, {ways}", row=rows.index(rare) + 1, column=label)


def _named_class(name: str, classes: Sequence[str]) -> list[int]:
    """Return a list of one index, that of the class in the column's ``name``; [] if it has no class or several."""
    words = split_words(re.sub(r"(?<=[a-z])(?=[01]$)", "_", name.lower()))
    named = [place for place, each in enumerate(classes) if each.lower() in words]
    kinds = {target_or_not(word) for word in words} - {None}
    if not named and len(kinds) == 1 and {target_or_not(each) for each in classes} == {0, 1}:
        named = [place for place, each in enumerate(classes) if target_or_not(each) in kinds]
    return named if len(named) == 1 else []


def decision_roles(columns: OpenColumns, label: str | None, decision: str) -> Roles:
    """Return roles for the column ``decision`` of predicted labels. Without known classes, all labels are classes."""
    if columns.class_names is not None:
        return Roles("decisions", [decision], tuple(columns.class_names))
    names = [decision, *([] if label is None else [label])]
    of_columns = [{label_text(text) for text in distinct_texts(columns.table, [name], MAX_CLASSES)} for name in names]
    classes = sorted(set.union(*of_columns), key=number_or_text)
    missing = [name for name in classes if name.lower() in MISSING]
    numbers = [number for name in classes if (number := to_number(name)) is not None]
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
