"""Choose how a classifier's file is read: the one reading that is clear, or an error with commands that were tried."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mpcs_torch.errors import printable, quoted
from mpcs_torch.evaluation.files.decision_columns import paired_decision
from mpcs_torch.evaluation.files.facts import SEPARATOR, Facts, label_text, nominal_sum, span
from mpcs_torch.evaluation.files.label_columns import Labels, label_candidates
from mpcs_torch.evaluation.files.problems import Problem
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.readings import find_readings
from mpcs_torch.evaluation.files.roles import UNNAMED, Reading, Roles
from mpcs_torch.evaluation.files.tables import is_gap, listed, to_number, to_text
from mpcs_torch.evaluation.files.words import MODELS, is_index, is_label, plain

MAX_OFFERS, MAX_TRIED = 6, 12
"""The maximum numbers of commands that an error names, and of readings that are tried for them."""
MAX_WIDTH = 300
"""The maximum number of columns of a file for which offers are tried: each trial looks at all columns several times."""
MAX_DESCRIBED = 12
"""The maximum number of columns that an error describes."""
MIN_REPEATED, MAX_MODELS = 8, 20
"""The minimum number of labels in a sequence that repeats, and the maximum number of its repetitions, by which models
below each other are recognized in a column that no name calls one of models."""
OF_ROWS = ("sums", "no_class")
"""The rules for rows: if only one reading is named, the error for its first bad row says more than one for the file."""
TOTALS = frozenset(("all", "total", "totals", "sum", "support"))
"""The names of the sums of a confusion matrix, in lower case."""


class Measured(NamedTuple):
    """The accuracy of each model, by one way to read a file."""

    accuracies: Mapping[str, float]
    rows: int
    classes: Sequence[str]

    def __str__(self) -> str:
        several = len(self.accuracies) > 1
        values = [f"{name} {value:.2f}" if several else f"{value:.2f}" for name, value in self.accuracies.items()]
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        return f"accuracy {', '.join(values)} of {rows}; classes {span(self.classes)}"


Measure = Callable[[ReadOptions], Measured]
"""A function that reads all rows of a file by other options; it raises a PredictionsError if they cannot be read."""


class Offer(NamedTuple):
    """Options that read a file, and what they measure. Each offer was tried."""

    options: ReadOptions
    words: str
    """The options to add to the command."""
    measured: Measured


class UnclearFileError(PredictionsError):
    """The error for a file that can be read in several ways, or in none; it offers options that read the file."""

    def __init__(self, path: Path, problem: Problem, offers: Sequence[Offer] = (), further: Sequence[str] = ()) -> None:
        super().__init__(path, str(problem))
        self.problem, self.offers = problem, list(offers)
        lines = [self.args[0], *map(printable, further)]
        if offers:
            lines.append("One of these options reads it:")
            lines += [printable(f"  {offer.words}   ({offer.measured})") for offer in offers]
        self.args = ("\n".join(lines),)


def choose(facts: Facts, measure: Measure | None, *, needs_labels: bool = True) -> Roles:
    """Return the roles of the columns by the reading of a file that is clear.

    Args:
        facts: The facts of the file.
        measure: The function that tries offers; None to raise errors without offers, as within a trial.
        needs_labels: Whether a reading must have labels.

    Raises:
        UnclearFileError: If no reading is clear, or several are.
    """
    if _is_confusion(facts):
        raise UnclearFileError(facts.table.path, Problem("confusion"))
    readings = find_readings(facts, needs_labels=needs_labels)
    chosen = _chosen(readings)
    if len(chosen) != 1:
        error = _unclear(facts, readings, chosen, measure, needs_labels=needs_labels)
        named = [reading for reading in readings if reading.strength > UNNAMED]
        is_left_to_rows = len(named) == 1 and named[0].broken is not None and named[0].broken.code in OF_ROWS
        if error.offers or measure is None or not is_left_to_rows:
            raise error
        chosen = named
    roles = chosen[0].roles
    _refuse_stacked(facts, roles, measure)
    used = {*roles.scores, *roles.truth, roles.label}
    unused = [name for name in facts.free if name not in used]
    failed = [one for one in readings if one.broken and one.broken.code in ("sums", "unordered")]
    failed = [one for one in failed if not {*one.roles.scores} & used]
    remarks = [str(one.broken) for one in failed[:1]] if roles.form == "decisions" else []
    beside = {one.roles.scores[0]: one for one in readings if one.is_clear and one.roles.form == "decisions"}
    decided = paired_decision(roles.scores[0], [name for name in beside if name not in roles.scores])
    first = facts.matrix(roles.scores)
    return roles._replace(unused=unused, decided=decided, first_scores=first, remarks=remarks)


def _chosen(readings: Sequence[Reading]) -> list[Reading]:
    """Return the clear readings of the greatest strength; those that mean the same count once."""
    clear = [reading for reading in readings if reading.is_clear]
    top = max((reading.strength for reading in clear), default=UNNAMED)
    # A doubted reading with names that say more is not passed over in silence for a weaker one; nor are scores that sum
    # to 1, but are of other classes than the labels.
    for one in readings:
        is_doubted = one.doubt is not None if one.broken is None else one.broken.code == "no_class"
        if is_doubted and one.strength > top:
            return []
    if any(reading.roles.label for reading in clear):  # where labels may be missing, too
        clear = [reading for reading in clear if reading.roles.label or reading.roles.truth]
    by_meaning = {_meaning(reading.roles): reading for reading in reversed(clear) if reading.strength == top}
    return [*by_meaning.values()][::-1]


def _meaning(roles: Roles) -> tuple[Any, ...]:
    """Return what a reading says, so that two readings are the same if this is equal."""
    names = roles.called or roles.classes
    if roles.form == "columns":
        scores: Any = frozenset(zip(roles.scores, names, strict=True))
    elif roles.form == "positive":
        scores = (roles.scores[0], names[roles.of_class])
    elif roles.form == "lists":
        scores = (roles.scores[0], tuple(names))
    else:
        scores = (roles.scores[0], frozenset(names))
    return roles.form, roles.label, tuple(roles.truth), scores


def _unclear(
    facts: Facts,
    readings: Sequence[Reading],
    chosen: Sequence[Reading],
    measure: Measure | None,
    *,
    needs_labels: bool,
) -> UnclearFileError:
    """Return the error for a file without one clear reading."""
    path, ranked = facts.table.path, sorted(readings, key=lambda one: _order(one, chosen))
    misplaced = [name for name in facts.options.columns if is_label(name)]
    if not readings and misplaced:
        return UnclearFileError(path, Problem("both", {"column": quoted(misplaced[0])}))
    bad = None if chosen else _bad_number(facts)
    if bad is not None:
        return UnclearFileError(path, bad)
    offered = _offered(facts, ranked, chosen, measure, needs_labels=needs_labels)
    if chosen:
        problem = Problem("several")
    elif offered:
        problem = offered[0][0].doubt or offered[0][0].broken or Problem("several")
    else:
        problem = _problem(facts, ranked, needs_labels=needs_labels)
    further = [] if offered else [line for line in _described(facts, ranked) if line != str(problem)]
    return UnclearFileError(path, problem, [offer for _, offer in offered], further)


def _problem(facts: Facts, ranked: Sequence[Reading], *, needs_labels: bool) -> Problem:
    """Return what keeps a file from being read: the doubt of the best reading, or the rule that it breaks."""
    named = [one for one in ranked if one.strength > UNNAMED]
    doubts = [one.doubt for one in named if one.doubt is not None and one.broken is None]
    if doubts:
        return doubts[0]
    broken = [one.broken for one in named if one.broken is not None and one.strength == named[0].strength]
    if len({each.code for each in broken}) == 1:
        return broken[0]
    if named:
        return Problem("none")
    labels = label_candidates(facts, needs_labels=True) if needs_labels else [Labels()]
    return Problem("no_scores" if any(each.is_named for each in labels) else "no_labels")


def _order(reading: Reading, chosen: Sequence[Reading]) -> tuple[bool, int, bool]:
    """Return a sort key that puts the readings first that names and values support most."""
    return reading not in chosen, -reading.strength, reading.broken is not None


def _bad_number(facts: Facts) -> Problem | None:
    """Return the problem that a column of decimal numbers has a text; None if there is none."""
    for name in facts.by_kind(facts.free, "text"):
        values = facts.values[name]
        rows = [row for row, value in enumerate(values) if to_number(value) is None and not is_gap(value)]
        decimals = [value for value in values if (to_number(value) or 0) % 1]
        if rows and len(decimals) >= len(rows) and not is_index(name):
            return Problem("no_number", {"column": quoted(name), "row": rows[0] + 1, "value": quoted(values[rows[0]])})
    return None


def _offered(
    facts: Facts,
    ranked: Sequence[Reading],
    chosen: Sequence[Reading],
    measure: Measure | None,
    *,
    needs_labels: bool,
) -> list[tuple[Reading, Offer]]:
    """Return readings with options that make each the one that is clear; each is tried on all rows."""
    if measure is None or len(facts.table.names) > MAX_WIDTH:
        return []
    offered = dict[str, tuple[Reading, Offer]]()
    models = _side_by_side([one.roles for one in chosen])
    if len(models) > 1:
        for offer in _tried(facts, facts.options._replace(models=tuple(models)), measure):
            offered[offer.words] = (chosen[0], offer)
    for reading in ranked[:MAX_TRIED]:
        is_weaker = any(other.strength > reading.strength == UNNAMED for other, _ in offered.values())
        if len(offered) >= MAX_OFFERS or is_weaker:  # what no name says is offered if nothing else is
            break
        for options in _options_for(facts, reading, needs_labels=needs_labels):
            for offer in _tried(facts, options, measure):
                offered.setdefault(offer.words, (reading, offer))
    return [*offered.values()][:MAX_OFFERS]


def _tried(facts: Facts, options: ReadOptions, measure: Measure) -> list[Offer]:
    """Return the offer of ``options`` if they read the file; else an empty list."""
    try:
        measured = measure(options)
    except UnclearFileError as error:
        models = error.problem.fields.get("models")
        return _tried(facts, options._replace(models=tuple(models)), measure) if models else []
    except PredictionsError:
        return []
    return [Offer(options, options.words_beyond(facts.options), measured)]


def _options_for(facts: Facts, reading: Reading, *, needs_labels: bool) -> Iterator[ReadOptions]:
    """Yield the fewest options, beyond those given, by which ``reading`` is the one that is clear."""
    given, roles = facts.options, reading.roles
    if reading.broken is not None:
        yield from _mended(facts, reading)
        return
    asked: dict[str, Any] = {}
    if roles.form == "decisions":
        asked["decision_column"] = roles.scores[0]
    else:
        asked["score_columns"] = tuple(roles.scores)
    if roles.label is not None and roles.label != facts.table.label:
        asked["label_column"] = roles.label
    ways = [asked, asked | {"classes": _names_of_classes(roles)}]
    ways = [way for way in ways if _is_read_so(facts, given._replace(**way), roles, needs_labels=needs_labels)]
    if not ways:
        return
    asked = ways[0]
    for name in ("classes", "label_column", "score_columns", "decision_column"):
        fewer = {each: value for each, value in asked.items() if each != name}
        if name in asked and fewer and _is_read_so(facts, given._replace(**fewer), roles, needs_labels=needs_labels):
            asked = fewer
    yield given._replace(**asked)


def _names_of_classes(roles: Roles) -> tuple[str, ...]:
    """Return what ``--classes`` must name: the file's names of the classes, last that of a single probability."""
    names = tuple(roles.called or roles.classes)
    return names[::-1] if roles.form == "positive" and roles.of_class == 0 else names


def _mended(facts: Facts, reading: Reading) -> Iterator[ReadOptions]:
    """Yield options that may read a file whose first rows break a rule: each is tried before it is offered."""
    given, roles = facts.options, reading.roles
    code = "" if reading.broken is None else reading.broken.code
    columns = tuple(roles.scores)
    if code == "sums" and not given.from_logits and _may_be_logits(facts, columns):
        yield given._replace(from_logits=True, score_columns=columns)
    names = [name for name in (roles.scores[0], roles.label) if name is not None]
    texts = {text for name in names for text in facts.all_texts(name)} if code in ("label_gap", "cases") else set()
    if code == "label_gap":
        yield given._replace(missing="drop")
    if all(text.isalpha() for text in texts if is_gap(text)) and texts:  # a word such as none may be a class
        yield given._replace(classes=tuple(sorted(texts)))


def _may_be_logits(facts: Facts, columns: Sequence[str]) -> bool:
    """Return whether scores in the first rows are beyond the range of probabilities."""
    scores = facts.matrix(columns)
    return bool(scores.size) and (scores.min() < 0 or scores.max() > 1)


def _is_read_so(facts: Facts, options: ReadOptions, roles: Roles, *, needs_labels: bool) -> bool:
    """Return whether ``options`` make the reading with ``roles`` the one that is clear."""
    try:
        chosen = _chosen(find_readings(facts.asked(options), needs_labels=needs_labels))
    except PredictionsError:
        return False
    return len(chosen) == 1 and _meaning(chosen[0].roles) == _meaning(roles)


def _described(facts: Facts, ranked: Sequence[Reading]) -> list[str]:
    """Describe the columns, and the ways to read them that come closest, for an error without offers."""
    lines = [f"it has {listed(facts.table.names, MAX_DESCRIBED)}"] if facts.table.has_names else ["it has no header"]
    for name in facts.table.names[:MAX_DESCRIBED]:
        values = list(dict.fromkeys(to_text(value) for value in facts.values[name]))
        kind = {"whole": "whole numbers", "number": "numbers", "list": "lists of numbers"}.get(facts.kinds[name], "")
        lines.append(f"  {listed([name])}: {kind or facts.kinds[name]}, such as {listed(values, 3)}")
    lacking = [name for name in facts.class_names or () if name not in facts.table.names]
    if lacking and facts.table.has_names:
        lines.append(f"there is no column for {listed(lacking, 5)}")
    broken = [str(one.broken) for one in ranked if one.broken is not None]
    options = "--label-column, --score-columns, --decision-column and --classes name what names and values do not tell"
    return [*lines, *dict.fromkeys(broken[:3]), options]


def _is_confusion(facts: Facts) -> bool:
    """Return whether the first column names the rows as the header names the other columns, which have counts."""
    table = facts.table
    if not table.has_names or len(table.names) < 3 or facts.options.label_column or facts.options.score_columns:
        return False
    first, *others = table.names
    rows = [to_text(value) for value in facts.values[first]]
    names = [name for name in others if name.lower() not in TOTALS]
    is_square = [row for row in rows if row.lower() not in TOTALS] == names
    if not is_square or len(facts.by_kind(others, "whole")) < len(others):
        return False
    return nominal_sum(facts.matrix(names).sum(axis=1), len(names)) is None  # else each row has probabilities


# Several models in one file


def _side_by_side(readings: Sequence[Roles]) -> list[str]:
    """Return the names of models whose columns stand side by side: what is left of names without common words."""
    if len(readings) < 2:
        return []
    words = [[SEPARATOR.split(name) for name in roles.scores] for roles in readings]
    tokens = list[str]()
    if all(len(names) == 1 for names in words):
        singles = [names[0] for names in words]
        start, end = _shared_words(singles), _shared_words([name[::-1] for name in singles])
        if start and any(len(name) == start + end for name in singles):  # deep_pred beside deep_wide_pred
            start -= 1
        owns = [name[start : len(name) - end] for name in singles]
    else:
        owns = []
        for place, names in enumerate(words):
            others = {word for other, of in enumerate(words) if other != place for name in of for word in name}
            owns.append([word for word in names[0] if word not in others and all(word in name for name in names)])
    for own, roles in zip(owns, readings, strict=True):
        name = roles.scores[0]
        tokens.append(name[name.find(own[0]) : name.rfind(own[-1]) + len(own[-1])] if own else "")
    return tokens if all(tokens) and len({*tokens}) == len(tokens) else []


def _shared_words(names: Sequence[Sequence[str]]) -> int:
    """Return with how many equal words all ``names`` begin."""
    shortest = min(map(len, names))
    return next((place for place in range(shortest) if len({name[place] for name in names}) > 1), shortest)


def has_words(name: str, words: str) -> bool:
    """Return whether the name of a column has the name of a model as words of its own."""
    return re.search(rf"(?<![0-9a-zA-Z]){re.escape(words)}(?![0-9a-zA-Z])", name) is not None


def _refuse_stacked(facts: Facts, roles: Roles, measure: Measure | None) -> None:
    """Raise an error if models seem to stand below each other, so that each sample has several rows."""
    table, used = facts.table, {*roles.scores, *roles.truth, roles.label}
    if roles.label is None or facts.options.models or not table.has_names:
        return
    columns = [name for name in facts.free if name not in used and facts.kinds[name] in ("text", "whole")]
    columns = [name for name in columns if len(facts.texts(name)) <= MAX_MODELS and not is_index(name)]
    if not columns:
        return
    ids = [name for name in facts.free if is_index(name)]
    read = table.read(columns)
    for name in columns:
        counts = {count["counts"] for count in read.single(name).value_counts().to_pylist()}
        if len(counts) > 1:  # models below each other have equally many rows
            continue
        known = table.read([roles.label, *ids])
        labels = [label_text(value) for value in known.columns[roles.label].tolist()]
        values = [label_text(value) for value in read.columns[name].tolist()]
        of_ids = {each: known.columns[each].tolist() for each in ids}
        models = _repeated(values, labels, of_ids, is_named=plain(name) in MODELS)
        if models:
            ways = [facts.options._replace(models=tuple(models)), facts.options._replace(models=tuple(models[:1]))]
            offers = [offer for way in ways if measure is not None for offer in _tried(facts, way, measure)]
            problem = Problem("stacked", {"column": quoted(name), "models": models})
            raise UnclearFileError(table.path, problem, offers)


def _repeated(
    values: Sequence[str], labels: Sequence[str], ids: Mapping[str, Sequence[Any]], *, is_named: bool
) -> list[str]:
    """Return the distinct ``values`` if the labels of each are the same, row by row or by an id; else an empty list."""
    distinct = list(dict.fromkeys(values))
    if not 2 <= len(distinct) <= MAX_MODELS or len(values) % len(distinct) or any(is_gap(each) for each in distinct):
        return []
    size, sequences = len(values) // len(distinct), dict[str, list[str]]()
    for value, label in zip(values, labels, strict=True):
        sequences.setdefault(value, []).append(label)
    first = sequences[distinct[0]]
    changes = sum(one != two for one, two in pairwise(first))
    is_varied = changes >= len({*first}) > 1  # sorted labels repeat in balanced folds, too
    is_sequence = all(each == first for each in sequences.values())
    if is_sequence and size > 1 and (is_named or (is_varied and size >= MIN_REPEATED)):
        return distinct
    for of in ids.values():  # in another order, but with the same ids
        pairs = {value: set[tuple[Any, str]]() for value in distinct}
        for value, label, one in zip(values, labels, of, strict=True):
            pairs[value].add((one, label))
        first_pairs = pairs[distinct[0]]
        if size > 1 and len(first_pairs) == size and all(each == first_pairs for each in pairs.values()):
            return distinct
    return []
