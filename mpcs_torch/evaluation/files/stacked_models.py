"""Recognize models that stand below each other in one file, so that each sample has several rows."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.models import joined_name
from mpcs_torch.evaluation.files.offers import (
    ReadingMeasure,
    UnclearFileError,
    tried,
    unstacked,
)
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import ReadColumns, is_gap
from mpcs_torch.evaluation.files.words import MODELS, is_index, plain

MIN_REPEATED = 8
"""The minimum number of labels in a sequence that repeats, by which models below each other are recognized in a column
that no name calls one of models."""
MAX_MODELS = 20
"""The maximum number of models below each other."""
MAX_PAIRED = 8
"""The maximum number of columns of which two together may tell the models."""


def refuse_stacked(facts: Facts, roles: Roles, measure: ReadingMeasure | None) -> None:
    """Raise an error if models seem to stand below each other, so that each sample has several rows."""
    table = facts.table
    used = {*roles.scores, *roles.truth, roles.label}
    if roles.label is None or facts.options.models or not table.has_names:
        return
    ids = [name for name in facts.free if is_index(name)]
    columns = [
        name
        for name in facts.by_kind(facts.free, "text", "whole")
        if name not in (*used, *ids)
    ]
    columns = [name for name in columns if len(facts.texts(name)) <= MAX_MODELS]
    if not columns:
        return
    groupings = [*_groupings(table.read(columns), columns, is_paired=bool(ids))]
    if not groupings:
        return
    read = table.read([roles.label, *ids])
    labels, *of_ids = [read.groups(name, "").codes for name in (roles.label, *ids)]
    by_id = dict(zip(ids, of_ids, strict=True))
    for names, models, codes in groupings:
        rows = codes.argsort(stable=True).view(int(codes.max()) + 1, -1)
        matched = _matched_by_ids(rows, labels, by_id)
        # The trials of each enrolled model of a detector may have equal labels.
        if matched is None and len(names) == 1 and not facts.of_trials:
            is_named = plain(names[0]) in MODELS
            is_repeated = _has_repeated_labels(rows, labels, by_id, is_named=is_named)
            matched = [] if is_repeated else None
        if matched is not None:
            problem = Rule("stacked", columns=names, models=models, ids=matched)
            ways = unstacked(facts, problem, facts.options)
            if not facts.of_trials:
                ways.append(facts.options._replace(models=models[:1]))
            offers = [offer for way in ways for offer in tried(facts, way, measure)]
            raise UnclearFileError(table.path, problem, offers)


def _groupings(
    read: ReadColumns, columns: Sequence[str], *, is_paired: bool
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], Tensor]]:
    """Yield columns that may tell models: a column or, with ``is_paired``, two; with the models, and that of each row.

    Models have equally many rows.
    """
    groups = {name: read.groups(name, "") for name in columns}
    # Later rows may have more names than the first ones.
    few = [name for name in columns if len(groups[name].names) <= MAX_MODELS]
    sets: list[tuple[str, ...]] = [(name,) for name in few]
    if is_paired:
        sets += combinations(few[:MAX_PAIRED], 2)
    for names in sets:
        codes = groups[names[0]].codes
        texts = [[label_text(name)] for name in groups[names[0]].names]
        for name in names[1:]:
            further = groups[name].names
            codes = codes * len(further) + groups[name].codes
            texts = [
                [*of_first, label_text(text)] for of_first in texts for text in further
            ]
        kept, places = codes.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        sizes = places.bincount().tolist()
        are_alike = 2 <= len(sizes) <= MAX_MODELS and len({*sizes}) == 1
        models = [texts[code] for code in kept.tolist()] if are_alike else []
        if models and not any(is_gap(text) for of_model in models for text in of_model):
            yield names, tuple(map(joined_name, models)), places


def _matched_by_ids(
    rows: Tensor, labels: Tensor, ids: Mapping[str, Tensor]
) -> list[str] | None:
    """Return [NAME] if each model has the same ids in a column, each with the same label; [] if in order; else None.

    ``rows``, (M, n), has the places of the rows of each of M models.
    """
    by_model = labels[rows]
    for name, of_rows in ids.items():
        sorted_ids, order = of_rows[rows].sort(dim=1)
        sorted_labels = by_model.gather(1, order)
        are_ids_same = bool((sorted_ids == sorted_ids[0]).all())
        are_labels_same = bool((sorted_labels == sorted_labels[0]).all())
        are_different = bool((sorted_ids[0].diff() > 0).all())
        if len(rows[0]) > 1 and are_ids_same and are_labels_same and are_different:
            return [] if bool((by_model == by_model[0]).all()) else [name]
    return None


def _has_repeated_labels(
    rows: Tensor, labels: Tensor, ids: Mapping[str, Tensor], *, is_named: bool
) -> bool:
    """Return whether the labels of each model are the same in order, and neither by chance nor those of other samples.

    ``rows`` is as in `_matched_by_ids`; ``is_named`` says whether a name calls the column one of models.
    """
    by_model = labels[rows]
    size = len(rows[0])
    if size < 2 or not bool((by_model == by_model[0]).all()):
        return False
    changes = int((by_model[0].diff() != 0).sum())
    number = len({*by_model[0].tolist()})
    is_varied = changes >= number > 1  # sorted labels repeat in balanced folds, too
    # Ids of which some occur in several rows, but not in those of all models: the samples differ.
    are_others = any(int(of_rows.max()) + 1 < len(of_rows) for of_rows in ids.values())
    return is_named or (is_varied and size >= MIN_REPEATED and not are_others)
