"""Offer options that read a file which is unclear: each was tried on all rows, and says what it measures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, NamedTuple

from mpcs_torch.errors import InvalidValueError, Rule, printable
from mpcs_torch.evaluation.files.called_classes import MAX_ORDERED
from mpcs_torch.evaluation.files.facts import Facts, number_or_text
from mpcs_torch.evaluation.files.models import side_by_side
from mpcs_torch.evaluation.files.one_probability import shown_classes
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.readings import clear_readings, find_readings, meaning
from mpcs_torch.evaluation.files.roles import UNNAMED, Reading, Roles
from mpcs_torch.evaluation.files.tables import is_gap
from mpcs_torch.evaluation.files.words import MODELS, is_negated, plain, signed_labels

MAX_OFFERS = 6
"""The maximum number of commands that an error names."""
MAX_TRIED = 12
"""The maximum number of readings that are tried for these commands."""
MAX_WIDTH = 1000
"""The maximum number of columns of a file for which offers are tried: each trial looks at all columns several times."""


class ReadValues(NamedTuple):
    """The accuracy of each model, or the equal error rate of a detector, by one way to read a file."""

    values: Mapping[str, float]
    rows: int
    meaning: str
    """A phrase on the labels: the classes in their order, or those of targets."""
    metric: str = "accuracy"

    def __str__(self) -> str:
        values = [_decimals(value) for value in self.values.values()]
        if len(values) > 1:  # of several models
            pairs = zip(self.values, values, strict=True)
            values = [f"{name} {value}" for name, value in pairs]
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        return f"{self.metric} {', '.join(values)} of {rows}; {self.meaning}"


def _decimals(value: float) -> str:
    """Return a number with two decimals, or with four if these say more, as among models that are right in 99.9 %."""
    text = f"{value:.2f}"
    return text if abs(value - float(text)) < 5e-5 else f"{value:.4f}"


ReadingMeasure = Callable[[Facts, ReadOptions], ReadValues]
"""A function that reads all rows of a file by other options; it raises a PredictionsError if they cannot be read."""


class Offer(NamedTuple):
    """Options that read a file, and what they measure. Each offer was tried."""

    options: ReadOptions
    words: str
    """The options to add to the command."""
    measured: ReadValues


@dataclass(eq=False)
class UnclearFileError(PredictionsError):
    """The error for a file that can be read in several ways, or in none; it offers options that read the file."""

    offers: Sequence[Offer] = ()
    further: Sequence[object] = ()
    """Lines that describe the file."""
    untried: int = 0
    """The number of further ways to read the file, which were not tried."""

    def __str__(self) -> str:
        lines = [super().__str__(), *self.further]
        if self.offers:
            lines.append("One of these options reads it:")
        lines += [f"  {offer.words}   ({offer.measured})" for offer in self.offers]
        if self.offers and self.untried:
            lines.append(f"  and {self.untried} more, which were not tried")
        return "\n".join(printable(str(line)) for line in lines)


def offered(
    facts: Facts,
    ranked: Sequence[Reading],
    chosen: Sequence[Reading],
    measure: ReadingMeasure | None,
) -> tuple[list[tuple[Reading, Offer]], int]:
    """Return readings with options that make each the one that is clear, and the number of others, left untried.

    Each of the options was tried on all rows.
    """
    if measure is None or len(facts.table.names) > MAX_WIDTH:
        return [], 0
    by_words = _offers_of_models(facts, ranked, chosen, measure)
    for place, reading in enumerate(ranked):
        # What no name says is offered if nothing else is.
        has_named = any(other.strength > UNNAMED for other, _ in by_words.values())
        if reading.strength == UNNAMED and has_named:
            break
        if len(by_words) >= MAX_OFFERS or place >= MAX_TRIED:
            untried = [one for one in ranked[place:] if one.broken is None]
            return [*by_words.values()][:MAX_OFFERS], len(untried)
        for options in _options_for(facts, reading):
            for offer in tried(facts, options, measure):
                by_words.setdefault(offer.words, (reading, offer))
    offers = [*by_words.values()][:MAX_OFFERS]
    targets = {offer.options.target_label for _, offer in offers}
    if facts.of_trials and len(targets) == 1:
        offers.sort(key=lambda pair: _is_by_chance(pair[1]))
    return offers, 0


def _is_by_chance(offer: Offer) -> bool:
    """Return whether no detector's equal error rate is better than chance, as by the scores of the other class."""
    rates = offer.measured.values.values()
    return min(rates) >= 0.5


def _offers_of_models(
    facts: Facts,
    ranked: Sequence[Reading],
    chosen: Sequence[Reading],
    measure: ReadingMeasure,
) -> dict[str, tuple[Reading, Offer]]:
    """Return the offer, by its words, that reads several columns as those of models; empty if they are not alike."""
    alike = [] if facts.of_trials else _alike(facts, ranked, chosen)
    models = _models(facts, ranked, alike) if alike else []
    if not chosen and not models:
        models = [one.roles.scores[0] for one in alike]
    if len(models) < 2:
        return {}
    options = facts.options._replace(models=tuple(models))
    offers = tried(facts, options, measure)
    if not offers:  # names do not tell the label, so it must be given
        label = alike[0].roles.label
        offers = tried(facts, options._replace(label_column=label), measure)
    return {offer.words: (alike[0], offer) for offer in offers}


def _alike(
    facts: Facts, ranked: Sequence[Reading], chosen: Sequence[Reading]
) -> list[Reading]:
    """Return readings of the same labels that may be those of models: the clear ones, or those by value alone."""
    of_doubt = dict[str, list[Reading]]()
    for one in ranked:
        if one.doubt is not None:
            of_doubt.setdefault(one.doubt.code, []).append(one)
    by_value = of_doubt.get("not_labels", [])
    if not by_value:
        by_value = of_doubt.get("not_decisions", [])
    # Where a name calls a column predicted labels, others with values of the labels are features.
    if any(one.strength > UNNAMED and one.roles.form == "decisions" for one in ranked):
        by_value = []
    alike = [*chosen] if chosen else by_value
    alike = [one for one in alike if one.roles.label == alike[0].roles.label]
    return [one for one in alike if not _is_of_score(facts, one, alike)]


def _is_of_score(facts: Facts, one: Reading, others: Sequence[Reading]) -> bool:
    """Return whether a reading has the decisions of a score, which orders them, in one of the ``others``."""
    roles = one.roles
    return roles.form == "decisions" and any(
        len(shown_classes(facts, other.roles, roles.scores[0])) == 1
        for other in others
        if other.roles.form == "positive"
    )


def _models(facts: Facts, ranked: Sequence[Reading], alike: Sequence[Reading]) -> list[str]:
    """Return the names of models side by side; also of those that only decide, as trees do with 0 and 1."""
    roles = [one.roles for one in alike]
    models = {*side_by_side(roles)}
    if any(one.scores[0] in models for one in roles):  # their names share no words
        ranked = []
    for one in ranked:
        is_decided = one.roles.form == "decisions" and one.broken is None
        is_same = one.roles.label == roles[0].label
        is_further = is_decided and is_same and not _is_of_score(facts, one, alike)
        # A column of another thing has not the words that the names of all models share.
        if is_further and models < {*side_by_side([*roles, one.roles])}:
            roles.append(one.roles)
    return side_by_side(roles)


def tried(
    facts: Facts, options: ReadOptions, measure: ReadingMeasure | None
) -> list[Offer]:
    """Return the offer of ``options`` if they read the file; else an empty list."""
    if measure is None:
        return []
    try:
        measured = measure(facts, options)
    except UnclearFileError as error:
        ways = unstacked(facts, error.rule, options) if error.code == "stacked" else []
        return [offer for way in ways for offer in tried(facts, way, measure)]
    except PredictionsError as error:
        if error.value is None and options.missing == "error":
            return tried(facts, options._replace(missing="drop"), measure)
        return []
    return [Offer(options, options.words_beyond(facts.options), measured)]


def unstacked(
    facts: Facts, stacked: Rule | InvalidValueError, options: ReadOptions
) -> list[ReadOptions]:
    """Return options for a file whose rows repeat by columns: it has models or, if no name says so, groups.

    Those of detectors are always groups.
    """
    columns = stacked.fields["columns"]
    ways: list[ReadOptions] = []
    if facts.of_trials:
        return [options._replace(by=(*options.by, *columns))]
    if not options.models:
        ids = stacked.fields["ids"]
        ways.append(
            options._replace(
                models=stacked.fields["models"],
                id_column=ids[0] if ids else options.id_column,
            )
        )
    if len(columns) == 1 and (options.models or plain(columns[0]) not in MODELS):
        ways.append(options._replace(by=(*options.by, *columns)))
    return ways


def _options_for(facts: Facts, reading: Reading) -> Iterator[ReadOptions]:
    """Yield options, beyond those given, by which ``reading`` is the one that is clear."""
    options = facts.options
    roles = reading.roles
    if reading.broken is None:
        yield from _asking(facts, options, roles)
        return
    if reading.broken.code == "label_gap":
        gaps = [
            {*filter(is_gap, facts.all_texts(name))} for name in _decided_columns(roles)
        ]
        is_word = bool(set.intersection(*gaps))  # of labels and of predicted labels
        if is_word:
            yield from _mended(facts, reading)
        yield from _asking(facts, options._replace(missing="drop"), roles)
        if is_word:
            return
    yield from _mended(facts, reading)


def _decided_columns(roles: Roles) -> list[str]:
    """Return the column of predicted labels, and that of labels, if there is one."""
    return [name for name in (roles.scores[0], roles.label) if name is not None]


def _asking(facts: Facts, basis: ReadOptions, roles: Roles) -> Iterator[ReadOptions]:
    """Yield the fewest options beyond ``basis`` that make the reading with ``roles`` the one that is clear."""
    asked: dict[str, Any] = {"score_columns": roles.scores}
    if roles.form == "decisions":
        asked = {"decision_column": roles.scores[0]}
    if roles.label not in (None, facts.table.label):
        asked["label_column"] = roles.label
    if facts.of_trials:
        asked["target_label"] = roles.classes[0]
    else:
        asked["classes"] = _names_of_classes(roles)
    for size in range(len(asked) + 1):
        for names in combinations(asked, size):
            options = basis._replace(**{name: asked[name] for name in names})
            if _is_read_so(facts, options, roles):
                yield options
                return


def _names_of_classes(roles: Roles) -> tuple[str, ...]:
    """Return what ``--classes`` must name: the file's names of the classes, last that of a single probability."""
    names = tuple(roles.called or roles.classes)
    if roles.form == "positive" and roles.of_class == 0:
        return names[::-1]
    return names


def _mended(facts: Facts, reading: Reading) -> Iterator[ReadOptions]:
    """Yield options that may read a file whose first rows break a rule: each is tried before it is offered."""
    options = facts.options
    roles = reading.roles
    code = "" if reading.broken is None else reading.broken.code
    columns = tuple(roles.scores)
    if code == "sums" and not options.from_logits and _may_be_logits(facts, columns):
        yield options._replace(from_logits=True, score_columns=columns)
    elif code == "disjoint":
        for classes in _orders_of_words(facts, roles):
            yield options._replace(label_column=roles.label, classes=classes)
    elif code == "no_class" and roles.form == "columns" and not roles.is_numbered:
        for classes in _orders_by_initials(facts, roles):
            yield options._replace(score_columns=columns, classes=classes)
    elif code in ("label_gap", "cases", "two_codes"):
        texts = set[str]().union(*map(facts.all_texts, _decided_columns(roles)))
        are_signs = code == "two_codes" and "-1" in texts  # of two classes, not of three
        if not are_signs and all(text.isalpha() for text in texts if is_gap(text)):
            # A word such as none may be a class.
            yield options._replace(classes=tuple(sorted(texts, key=number_or_text)))


def _orders_of_words(facts: Facts, roles: Roles) -> list[tuple[str, ...]]:
    """Return orders of the words that labels or decisions have, where the others have numbers or signs.

    Labels are 0 to 3, and decisions A to D; or decisions are false and true, and labels A and B; or the other way
    around.
    """
    words = facts.by_kind(_decided_columns(roles), "text")
    if len(words) == 2:
        words = [name for name in words if not signed_labels(facts.all_texts(name))]
    if len(words) != 1:
        return []
    texts = facts.all_texts(words[0])
    signed = signed_labels(texts)
    if signed:
        return [signed]
    classes = tuple(sorted(texts, key=lambda text: (not is_negated(text), text)))
    if len(classes) != 2:
        return [classes]
    orders: list[tuple[str, ...]] = [classes, classes[::-1]]
    orders.sort(key=lambda order: -_number_equal(facts, roles, order))
    return orders


def _orders_by_initials(facts: Facts, roles: Roles) -> Iterator[tuple[str, ...]]:
    """Yield the orders of the labels in which each begins as the column of its scores does, if they are few."""
    if roles.label is None:
        return
    labels = sorted(facts.labels(roles.label, in_all=True))
    if len(labels) != len(roles.scores) or len(labels) > MAX_ORDERED + 1:
        return
    for classes in permutations(labels):
        if _begin_alike(classes, roles.scores):
            yield classes


def _number_equal(facts: Facts, roles: Roles, classes: Sequence[str]) -> int:
    """Return in how many of the first rows labels and predicted labels are equal, if words are called by numbers."""
    number_of = {name: str(number) for number, name in enumerate(classes)}
    columns = [facts.columns[name].labels for name in (roles.scores[0], str(roles.label))]
    decisions, labels = [
        [number_of.get(text, text) for text in column] for column in columns
    ]
    return sum(one == other for one, other in zip(decisions, labels, strict=True))


def _begin_alike(classes: Sequence[str], columns: Sequence[str]) -> bool:
    """Return whether each of ``classes`` begins as its column does: sea_lion as sl_probability."""
    pairs = zip(classes, columns, strict=True)
    return all(name[:1].lower() == column[:1].lower() for name, column in pairs)


def _may_be_logits(facts: Facts, columns: Sequence[str]) -> bool:
    """Return whether scores in the first rows are beyond the range of probabilities."""
    scores = facts.matrix(columns)
    return bool(scores.size) and (scores.min() < 0 or scores.max() > 1)


def _is_read_so(facts: Facts, options: ReadOptions, roles: Roles) -> bool:
    """Return whether ``options`` make the reading with ``roles`` the one that is clear."""
    try:
        chosen = clear_readings(find_readings(facts.asked(options, facts.table)))
    except PredictionsError:
        return False
    return len(chosen) == 1 and meaning(chosen[0].roles) == meaning(roles)
