"""Recognize models that stand below each other in one file, so that each sample has several rows."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.offers import Measure, UnclearFileError, tried
from mpcs_torch.evaluation.files.problems import Problem
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import is_gap
from mpcs_torch.evaluation.files.words import MODELS, is_index, plain

MIN_REPEATED, MAX_MODELS = 8, 20
"""The minimum number of labels in a sequence that repeats, and the maximum number of its repetitions, by which models
below each other are recognized in a column that no name calls one of models."""


def refuse_stacked(facts: Facts, roles: Roles, measure: Measure | None) -> None:
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
            offers = [offer for way in ways if measure is not None for offer in tried(facts, way, measure)]
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
