"""Recognize models that stand below each other in one file, so that each sample has several rows."""

from collections.abc import Sequence

from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.offers import Measure, Offer, UnclearFileError, tried
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
        if (
            not 2 <= len(sizes) <= MAX_MODELS
            or len({*sizes}) > 1
            or any(map(is_gap, groups.names))
        ):
            continue
        labels, *of_ids = [read.groups(each, "").codes for each in (roles.label, *ids)]
        if _is_repeated(groups.codes, labels, of_ids, is_named=plain(name) in MODELS):
            models = tuple(map(label_text, groups.names))
            offers = list[Offer]()
            for some in (models, models[:1]):
                offers += tried(facts, facts.options._replace(models=some), measure)
            problem = Rule("stacked", column=name, models=models)
            raise UnclearFileError(table.path, problem, offers)


def _is_repeated(
    models: Tensor, labels: Tensor, ids: Sequence[Tensor], *, is_named: bool
) -> bool:
    """Return whether the labels of each model are the same, row by row or by an id; models have equally many rows."""
    rows = models.argsort(stable=True).view(int(models.max()) + 1, -1)
    by_model, size = labels[rows], rows.shape[1]
    changes = int((by_model[0].diff() != 0).sum())
    is_varied = (
        changes >= len({*by_model[0].tolist()}) > 1
    )  # sorted labels repeat in balanced folds, too
    is_sure = size > 1 and (is_named or (is_varied and size >= MIN_REPEATED))
    if is_sure and (by_model == by_model[0]).all():
        return True
    for of_rows in ids:
        sorted_ids, order = of_rows[rows].sort(dim=1)
        is_same = (sorted_ids == sorted_ids[0]).all() and (
            by_model.gather(1, order) == by_model[0][order[0]]
        ).all()
        if size > 1 and is_same and (sorted_ids[0].diff() > 0).all():
            return True
    return False
