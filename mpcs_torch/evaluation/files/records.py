"""Convert JSON values and nested rows to flat records, which have one value for each column."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpcs_torch.io.untrusted_files import FileRuleError


def parse_records(value: Any) -> list[Any]:
    """Return the records in a JSON value: an array of records, an object of columns, or an object of records by id."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and value:
        if all(isinstance(each, list) for each in value.values()) and len({*map(len, value.values())}) == 1:
            return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
        if all(isinstance(each, dict) for each in value.values()):
            rows = next(iter(value.values())).keys()
            if all(map(str.isdecimal, rows)) and all(each.keys() == rows for each in value.values()):  # as in pandas
                return [{name: each[row] for name, each in value.items()} for row in rows]
            return [{"id": name, **record} for name, record in value.items()]
        if {"columns", "data"} <= {*value}:  # orient="split" of pandas
            return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
        inner = [each for each in value.values() if _are(each, (dict, list))]
        return inner[0] if len(inner) == 1 else [value]
    raise FileRuleError("must contain records, or a list for each column")


def flat_record(record: Any) -> dict[str, Any]:
    """Flatten a record to one value for each column; nested values become columns named ``outer.inner``.

    Pipelines and language models write a list with a label and a score for each class. Such a list becomes a column of
    scores for each label.
    """
    if isinstance(record, list):
        by_label = _by_label(record)
        return by_label if by_label is not None else {"column 1": record}
    if not isinstance(record, Mapping):
        return {"column 1": record}
    flat = dict[str, Any]()
    texts = [name for name, value in record.items() if _are(value, (str,))]
    scores = [name for name, value in record.items() if _are(value, (int, float))]
    if len(texts) == len(scores) == 1 and len(labels := record[texts[0]]) == len(record[scores[0]]) == len({*labels}):
        by_label = dict(zip(labels, record[scores[0]], strict=True))
        record = {**{name: value for name, value in record.items() if name != texts[0]}, scores[0]: by_label}
    for name, value in record.items():
        inner = _by_label(value) if isinstance(value, list) else value
        if isinstance(inner, Mapping):
            flat |= {f"{name}.{key}": each for key, each in inner.items()}
        else:
            flat[name] = value
    return flat


def _are(value: Any, kinds: Sequence[type]) -> bool:
    """Return whether a value is a list, not empty, whose items all have one of the types ``kinds``."""
    return isinstance(value, list) and bool(value) and all(type(each) in kinds for each in value)


def _by_label(values: Sequence[Any]) -> dict[str, Any] | None:
    """Return the number for each text, if each record has exactly one of each and all texts differ; else None."""
    pairs = dict[str, Any]()
    for value in values:
        texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, Mapping) else []
        numbers = [each for each in value.values() if type(each) in (int, float)] if texts else []
        if len(texts) != 1 or len(numbers) != 1 or texts[0] in pairs:
            return None
        pairs[texts[0]] = numbers[0]
    return pairs or None
