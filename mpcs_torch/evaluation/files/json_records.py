"""Make flat records, with a value for each column, of JSON in the forms that other programs write."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpcs_torch.io.untrusted_files import FileRuleError


def parse_records(value: Any) -> list[Any]:
    """Return the records in a JSON value: a list of records, or an object with a list per column or a record per id."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and value:
        if (
            all(isinstance(each, list) for each in value.values())
            and len({*map(len, value.values())}) == 1
        ):
            return [
                dict(zip(value, row, strict=True))
                for row in zip(*value.values(), strict=True)
            ]
        if all(isinstance(each, dict) for each in value.values()):
            rows = next(iter(value.values())).keys()
            if all(map(str.isdecimal, rows)) and all(
                each.keys() == rows for each in value.values()
            ):  # as in pandas
                return [{name: each[row] for name, each in value.items()} for row in rows]
            return [{"id": name, **record} for name, record in value.items()]
        if {"columns", "data"} <= {*value}:  # orient="split" of pandas
            return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
        inner = [each for each in value.values() if _are(each, (dict, list))]
        return inner[0] if len(inner) == 1 else [value]
    raise FileRuleError("records")


def flat_record(record: Any) -> dict[str, Any]:
    """Return a record as a dictionary of values by column; nested values get the name ``outer.inner``.

    A list of labels with scores, such as ``[{"label": "cat", "score": 0.9}]``, becomes one column for each label.
    """
    if not isinstance(record, Mapping):
        return _by_label(record) or {"column 1": record}
    flat = dict[str, Any]()
    texts = [name for name, value in record.items() if _are(value, (str,))]
    scores = [name for name, value in record.items() if _are(value, (int, float))]
    if len(texts) == len(scores) == 1 and len(labels := record[texts[0]]) == len(
        record[scores[0]]
    ) == len({*labels}):
        by_label = dict(zip(labels, record[scores[0]], strict=True))
        record = {
            **{name: value for name, value in record.items() if name != texts[0]},
            scores[0]: by_label,
        }
    for name, value in record.items():
        inner = value if isinstance(value, Mapping) else _by_label(value)
        if isinstance(inner, Mapping):
            flat |= {f"{name}.{key}": each for key, each in inner.items()}
        else:
            flat[name] = _unwrapped(value)
    return flat


def _unwrapped(value: Any) -> Any:
    """Return the only item of a list of one, and the numbers of pairs of a log likelihood and whether it is greedy."""
    if not isinstance(value, list) or not value:
        return value
    if len(value) == 1 and isinstance(value[0], str | int | float):
        return value[0]
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
