"""Recognize models that stand below each other in one file, so that each sample has several rows."""

from collections.abc import Mapping

from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.offers import Measure, UnclearFileError, tried, unstacked
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import is_gap
from mpcs_torch.evaluation.files.words import MODELS, is_index, plain

MIN_REPEATED, MAX_MODELS = 8, 20
"""The minimum number of labels in a sequence that repeats, and the maximum number of its repetitions, by which models
below each other are recognized in a column that no name calls one of models."""


def refuse_stacked(facts: Facts, roles: Roles, measure: Measure | None) -> None:
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
    read = table.read([*columns, roles.label, *ids])
    for name in columns:
        groups = read.groups(name, "")
        sizes = groups.codes.bincount().tolist()
        are_alike = 2 <= len(sizes) <= MAX_MODELS and len({*sizes}) == 1
        if not are_alike or any(map(is_gap, groups.names)):
            continue
        labels, *of_ids = [read.groups(each, "").codes for each in (roles.label, *ids)]
        by_id = dict(zip(ids, of_ids, strict=True))
        matched = _matched_by(groups.codes, labels, by_id, is_named=plain(name) in MODELS)
        if matched is not None:
            models = tuple(map(label_text, groups.names))
            problem = Rule("stacked", column=name, models=models, ids=matched)
            ways = unstacked(problem, facts.options)
            ways.append(facts.options._replace(models=models[:1]))
            offers = [offer for way in ways for offer in tried(facts, way, measure)]
            raise UnclearFileError(table.path, problem, offers)


def _matched_by(
    models: Tensor, labels: Tensor, ids: Mapping[str, Tensor], *, is_named: bool
) -> list[str] | None:
    """Return how the labels of each model are the same: [] row by row, or [NAME] by the ids of a column; else None.

    Models have equally many rows.
    """
    rows = models.argsort(stable=True).view(int(models.max()) + 1, -1)
    by_model = labels[rows]
    size = rows.shape[1]
    changes = int((by_model[0].diff() != 0).sum())
    number = len({*by_model[0].tolist()})
    is_varied = changes >= number > 1  # sorted labels repeat in balanced folds, too
    is_sure = size > 1 and (is_named or (is_varied and size >= MIN_REPEATED))
    is_in_order = bool((by_model == by_model[0]).all())
    if is_sure and is_in_order:
        return []
    for name, of_rows in ids.items():
        sorted_ids, order = of_rows[rows].sort(dim=1)
        sorted_labels = by_model.gather(1, order)
        are_ids_same = (sorted_ids == sorted_ids[0]).all()
        are_labels_same = (sorted_labels == sorted_labels[0]).all()
        are_different = (sorted_ids[0].diff() > 0).all()
        if size > 1 and are_ids_same and are_labels_same and are_different:
            return [] if is_in_order else [name]
    return None
