"""Find several models in one file, and take the rows, or the columns, of each."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.facts import SEPARATOR, label_text, shared_start
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import (
    Column,
    FileTable,
    ReadColumns,
    column_kind,
    distinct_texts,
)

MAX_NAMES = 1000
"""The maximum number of different values of a column, or of two together, that may tell models."""


def side_by_side(readings: Sequence[Roles]) -> list[str]:
    """Return the names of models whose columns stand side by side: what is left of names without common words."""
    if len(readings) < 2:
        return []
    words: list[list[str]] = []
    for roles in readings:
        names = [SEPARATOR.split(name) for name in roles.scores]
        words.append([word for word in names[0] if all(word in name for name in names)])
    start = shared_start(words)
    end = shared_start([of_model[::-1] for of_model in words])
    if start and start + end in map(len, words):  # deep_pred beside deep_wide_pred
        start -= 1
    models: list[str] = []
    for of_model, roles in zip(words, readings, strict=True):
        rest = of_model[start : len(of_model) - end]
        models.append(_between(roles.scores[0], rest[0], rest[-1]) if rest else "")
    return models if all(models) and len({*models}) == len(models) else []


Source = tuple[FileTable, ReadOptions]
"""A table, and the options by which it is read."""


def _between(name: str, first: str, last: str) -> str:
    """Return ``name`` from the word ``first`` to the word ``last``, with the separators between."""
    words = SEPARATOR.split(name)
    before = words[: words.index(first)]
    until = len(words) - words[::-1].index(last)
    start = sum(len(word) + 1 for word in before)  # a separator is one character
    return name[start : len("_".join(words[:until]))]


def split_models(table: FileTable, options: ReadOptions) -> dict[str, Source]:
    """Return the table of each model in ``options.models``, and its options; without models, the only one is "".

    Side by side, the columns of a model have its name as words of theirs, and columns without any such name are common
    to all models. A model that is called as a column has this column alone. Below each other, a column of texts names
    the model of each row, or two columns together.

    Raises:
        PredictionsError: If neither is so.
    """
    models = options.models
    alone = options._replace(models=())
    if not models:
        return {"": (table, options)}
    owners = {
        name: [model for model in models if _has_words(name, model)] for name in table.names
    }
    if not {*models} <= {*chain(*owners.values())}:
        columns = _columns_of(table, models)
        return {model: (_rows_of(table, columns, model), alone) for model in models}
    # Of model and model_2, the column model_2_score is that of the longer name.
    owner = {name: max(named, key=len, default="") for name, named in owners.items()}
    split = dict[str, Source]()
    for model in models:
        names = [name for name in table.names if owner[name] in ("", model)]
        own = [model] if model in names else [name for name in names if owner[name]]
        split[model] = replace(table, names=names), _of_column(table, own, alone)
    return split


def _of_column(table: FileTable, own: Sequence[str], options: ReadOptions) -> ReadOptions:
    """Return ``options`` that read the only column of a model, if it has only one: scores if they are fractions."""
    if len(own) != 1:
        return options
    if column_kind(table.peek()[own[0]]) in ("number", "list"):
        return options._replace(score_columns=(own[0],))
    return options._replace(decision_column=own[0])


def joined_name(texts: Sequence[str]) -> str:
    """Return the name of a model whose rows have ``texts`` in the columns that tell the models."""
    return " ".join(texts)


def _columns_of(table: FileTable, models: Sequence[str]) -> tuple[str, ...]:
    """Return the column whose values name all ``models``, or two columns whose values, joined, do so."""
    values = table.peek()
    texts = dict[str, set[str]]()
    for name in table.names:
        if any(isinstance(value, list) for value in values[name]):
            continue
        with suppress(PredictionsError):  # it has too many different values
            texts[name] = {*map(label_text, distinct_texts(table, name, MAX_NAMES))}
            if {*models} <= texts[name]:
                return (name,)
    for name, further in combinations(texts, 2):
        if len(texts[name]) * len(texts[further]) > MAX_NAMES:
            continue
        names = {joined_name(both) for both in product(texts[name], texts[further])}
        if {*models} <= names:
            return name, further
    raise PredictionsError(
        table.path, Rule("words_or_values", models=models, columns=table.names_in_file)
    )


def _rows_of(table: FileTable, columns: Sequence[str], model: str) -> FileTable:
    """Return ``table`` with only the rows that have ``model`` in ``columns``, which are left out."""

    def load(
        wanted: Sequence[str], numbers: Collection[str], _: int | None
    ) -> dict[str, Column]:
        loaded = table.load([*wanted, *columns], numbers, None)
        texts = [map(label_text, loaded.pop(name).to_pylist()) for name in columns]
        kept = np.array([joined_name(row) == model for row in zip(*texts, strict=True)])
        return ReadColumns(table.path, loaded).where(kept).columns

    return replace(
        table,
        names=[name for name in table.names if name not in columns],
        load=load,
        load_types=None,
    )


def _has_words(name: str, words: str) -> bool:
    """Return whether the name of a column has the name of a model as words of its own."""
    return (
        re.search(rf"(?<![0-9a-zA-Z]){re.escape(words)}(?![0-9a-zA-Z])", name) is not None
    )
