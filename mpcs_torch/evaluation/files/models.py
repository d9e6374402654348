"""Find several models in one file, and take the rows, or the columns, of each."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
from torch import Tensor

from mpcs_torch.evaluation.files.facts import SEPARATOR, label_text
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import (
    PEEKED_ROWS,
    Column,
    FileTable,
    column_kind,
    distinct_texts,
    listed,
)

MAX_NAMES = 1000
"""The maximum number of different values of a column that may tell models."""


def side_by_side(readings: Sequence[Roles]) -> list[str]:
    """Return the names of models whose columns stand side by side: what is left of names without common words."""
    if len(readings) < 2:
        return []
    words, models = list[list[str]](), list[str]()
    for roles in readings:
        names = [SEPARATOR.split(name) for name in roles.scores]
        words.append([word for word in names[0] if all(word in name for name in names)])
    start, end = _shared_words(words), _shared_words([each[::-1] for each in words])
    if start and any(
        len(each) == start + end for each in words
    ):  # deep_pred beside deep_wide_pred
        start -= 1
    for each, roles in zip(words, readings, strict=True):
        own = each[start : len(each) - end]
        models.append(_between(roles.scores[0], own[0], own[-1]) if own else "")
    return models if all(models) and len({*models}) == len(models) else []


def _between(name: str, first: str, last: str) -> str:
    """Return ``name`` from the word ``first`` to the word ``last``, with the separators between."""
    words = SEPARATOR.split(name)
    before, until = words[: words.index(first)], len(words) - words[::-1].index(last)
    start = sum(len(word) + 1 for word in before)  # a separator is one character
    return name[start : len("_".join(words[:until]))]


def _shared_words(names: Sequence[Sequence[str]]) -> int:
    """Return with how many equal words all ``names`` begin."""
    return len([*takewhile(lambda words: len({*words}) == 1, zip(*names, strict=False))])


def split_models(
    table: FileTable, options: ReadOptions
) -> list[tuple[FileTable, ReadOptions]]:
    """Return the table of each model in ``options.models``, and the options by which it is read.

    Side by side, the columns of a model have its name as words of theirs, and columns without any such name are common
    to all models. A model that is called as a column has this column alone. Below each other, a column of texts names
    the model of each row.

    Raises:
        PredictionsError: If neither is so.
    """
    models, alone = options.models, options._replace(models=())
    if all(any(_has_words(name, model) for name in table.names) for model in models):
        owner = {
            name: max(
                (each for each in models if _has_words(name, each)), key=len, default=""
            )
            for name in table.names
        }
        split = list[tuple[FileTable, ReadOptions]]()
        for model in models:
            names = [name for name in table.names if owner[name] in ("", model)]
            split.append((replace(table, names=names), _of_column(table, model, alone)))
        return split
    column = _column_of(table, models)
    return [(_rows_of(table, column, model), alone) for model in models]


def _of_column(table: FileTable, model: str, options: ReadOptions) -> ReadOptions:
    """Return ``options`` that read the column ``model``, if there is one: scores if they are fractions."""
    if model not in table.names:
        return options
    is_score = column_kind(table.peek()[model]) in ("number", "list")
    return (
        options._replace(score_columns=(model,))
        if is_score
        else options._replace(decision_column=model)
    )


def _column_of(table: FileTable, models: Sequence[str]) -> str:
    """Return the column whose values name all ``models``."""
    values = table.peek()
    for name in table.names:
        if any(isinstance(value, list) for value in values[name]):
            continue
        try:
            texts = distinct_texts(table, name, MAX_NAMES)
        except PredictionsError:  # it has too many different values
            continue
        if {*models} <= {label_text(text) for text in texts}:
            return name
    rule = "--models must be words in names of columns, one for each model, or values of one column"
    raise PredictionsError(
        table.path, f"{rule}, but are {listed(models)}; {table.it_has()}"
    )


def _rows_of(table: FileTable, column: str, model: str) -> FileTable:
    """Return ``table`` with only the rows that have ``model`` in ``column``, which is left out."""

    def load(
        wanted: Sequence[str], numbers: Collection[str], rows: int | None
    ) -> dict[str, Column]:
        columns = table.load([*wanted, column], numbers, None)
        kept = np.array(
            [label_text(value) == model for value in columns.pop(column).to_pylist()]
        )
        taken = {name: _filtered(values, kept) for name, values in columns.items()}
        return (
            taken
            if rows is None
            else {name: values[: max(rows, PEEKED_ROWS)] for name, values in taken.items()}
        )

    return replace(
        table,
        names=[name for name in table.names if name != column],
        load=load,
        load_types=None,
    )


def _filtered(values: Column, kept: Any) -> Column:
    return values[kept] if isinstance(values, Tensor) else values.filter(kept)


def _has_words(name: str, words: str) -> bool:
    """Return whether the name of a column has the name of a model as words of its own."""
    return (
        re.search(rf"(?<![0-9a-zA-Z]){re.escape(words)}(?![0-9a-zA-Z])", name) is not None
    )
