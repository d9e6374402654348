"""Recognize models that stand below each other in one file, so that each sample has several rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.offers import Measure, UnclearFileError, tried
from mpcs_torch.evaluation.files.problems import Problem
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import is_gap
from mpcs_torch.evaluation.files.words import MODELS, is_index, plain

if TYPE_CHECKING:
    import pyarrow

MIN_REPEATED, MAX_MODELS = 8, 20
"""The minimum number of labels in a sequence that repeats, and the maximum number of its repetitions, by which models
below each other are recognized in a column that no name calls one of models."""


def refuse_stacked(facts: Facts, roles: Roles, measure: Measure | None) -> None:
    """Raise an error if models seem to stand below each other, so that each sample has several rows."""
    table, used = facts.table, {*roles.scores, *roles.truth, roles.label}
    if roles.label is None or facts.options.models or not table.has_names:
        return
    columns = [name for name in facts.by_kind(facts.free, "text", "whole") if name not in used and not is_index(name)]
    columns = [name for name in columns if len(facts.texts(name)) <= MAX_MODELS]
    read = table.read(columns) if columns else None
    columns = [name for name in columns if read is not None and _are_equal(read.single(name))]
    if read is None or not columns:
        return
    ids = [name for name in facts.free if is_index(name)]
    known = table.read([roles.label, *ids])
    labels = [label_text(value) for value in known.columns[roles.label].tolist()]
    of_ids = [known.columns[name].tolist() for name in ids]
    for name in columns:
        values = [label_text(value) for value in read.columns[name].tolist()]
        models = _repeated(values, labels, of_ids, is_named=plain(name) in MODELS)
        if models:
            ways = [facts.options._replace(models=tuple(some)) for some in (models, models[:1])]
            offers = [offer for way in ways if measure is not None for offer in tried(facts, way, measure)]
            problem = Problem("stacked", {"column": quoted(name), "models": models})
            raise UnclearFileError(table.path, problem, offers)


def _are_equal(values: "pyarrow.Array") -> bool:
    """Return whether all distinct values have equally many rows, as models below each other have."""
    return len({each["counts"] for each in values.value_counts().to_pylist()}) == 1


def _repeated(
    values: Sequence[str], labels: Sequence[str], ids: Sequence[Sequence[Any]], *, is_named: bool
) -> list[str]:
    """Return the distinct ``values`` if the labels of each are the same, row by row or by an id; else an empty list."""
    distinct, seen, places = list(dict.fromkeys(values)), Counter[str](), list[int]()
    if not 2 <= len(distinct) <= MAX_MODELS or any(is_gap(each) for each in distinct):
        return []
    for value in values:
        places.append(seen[value])
        seen[value] += 1
    size = len(values) // len(distinct)
    first = [label for value, label in zip(values, labels, strict=True) if value == distinct[0]]
    changes = sum(one != two for one, two in pairwise(first))
    is_varied = changes >= len({*first}) > 1  # sorted labels repeat in balanced folds, too
    is_sure = is_named or (is_varied and size >= MIN_REPEATED)
    for of in [*ids, *([places] if is_sure else [])]:
        samples = {value: set[tuple[Any, str]]() for value in distinct}
        for value, label, one in zip(values, labels, of, strict=True):
            samples[value].add((one, label))
        expected = samples[distinct[0]]
        if size > 1 and len(expected) == size and all(each == expected for each in samples.values()):
            return distinct
    return []
