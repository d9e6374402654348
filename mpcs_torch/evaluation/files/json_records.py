"""Make flat records, with a value for each column, of JSON in the forms that other programs write."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpcs_torch.io.untrusted_files import FileRuleError


def parse_records(value: Any) -> list[Any]:
    """Return the records in a JSON value: a list of records, or an object with a list per column or a record per id.

    Beside the columns, an object may have other values, such as an accuracy, which are left out.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and value:
        if all(isinstance(each, dict) for each in value.values()):
            rows = next(iter(value.values())).keys()
            are_numbers = all(map(str.isdecimal, rows))
            if are_numbers and all(column.keys() == rows for column in value.values()):
                # As pandas writes it: by column, and then by row.
                return [
                    {name: column[row] for name, column in value.items()} for row in rows
                ]
            return [{"id": name, **record} for name, record in value.items()]
        if {"columns", "data"} <= {*value}:  # orient="split" of pandas
            return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
        columns = _columns(value)
        if len(columns) == len(value) or (len(columns) > 1 and not _scored_names(value)):
            return [
                dict(zip(columns, row, strict=True))
                for row in zip(*columns.values(), strict=True)
            ]
        inner = [each for each in value.values() if _are(each, (dict, list))]
        return inner[0] if len(inner) == 1 else [value]
    raise FileRuleError("records")


def _columns(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the longest lists in ``value``; none if one of the lists has records, which are rows themselves."""
    lists = {name: each for name, each in value.items() if isinstance(each, list)}
    if any(_are(each, (dict,)) for each in lists.values()) and len(lists) < len(value):
        return {}
    rows = max(map(len, lists.values()), default=0)
    return {name: each for name, each in lists.items() if len(each) == rows}


def flat_record(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary of values by column; nested values get the name ``outer.inner``.

    A list of labels with scores, such as ``[{"label": "cat", "score": 0.9}]``, becomes one column for each label.
    """
    if not isinstance(record, Mapping):
        return _by_label(record) or {"column 1": record}
    flat = dict[str, Any]()
    scored = _scored_names(record)
    if scored is not None:
        names, scores = scored
        by_label = dict(zip(record[names], record[scores], strict=True))
        record = {
            **{name: value for name, value in record.items() if name != names},
            scores: by_label,
        }
    for name, value in record.items():
        inner = value if isinstance(value, Mapping) else _by_label(value)
        if isinstance(inner, Mapping):
            flat |= {f"{name}.{key}": each for key, each in inner.items()}
        else:
            flat[name] = _likelihoods(value)
    return flat


def _scored_names(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of the only list of texts, all different, and of the only list of numbers, one for each text."""
    texts = [name for name, value in record.items() if _are(value, (str,))]
    scores = [name for name, value in record.items() if _are(value, (int, float))]
    if len(texts) != 1 or len(scores) != 1:
        return None
    names = record[texts[0]]
    are_fitting = len(names) == len({*names}) == len(record[scores[0]])
    return (texts[0], scores[0]) if are_fitting else None


def _likelihoods(value: Any) -> Any:
    """Return the numbers of a list of pairs of a log likelihood and whether it is greedy; other values as they are."""
    if not isinstance(value, list) or not value:
        return value
    are_pairs = all(
        isinstance(each, list) and [*map(type, each)] == [float, bool] for each in value
    )
    return [number for number, _ in value] if are_pairs else value


def _are(value: Any, kinds: Sequence[type]) -> bool:
    """Return whether ``value`` is a list with at least one item, and all items have a type in ``kinds``."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(each) in kinds for each in value)
    )


def _by_label(values: Any) -> dict[str, Any] | None:
    """Map the only text in each of a list of records to its only number. Return None for others, or repeated texts."""
    pairs = dict[str, Any]()
    for value in values if isinstance(values, list) else ():
        items = [*value.values()] if isinstance(value, Mapping) else []
        texts = [each for each in items if isinstance(each, str)]
        numbers = [each for each in items if type(each) in (int, float)]
        if len(texts) != 1 or len(numbers) != 1 or texts[0] in pairs:
            return None
        pairs[texts[0]] = numbers[0]
    return pairs or None
