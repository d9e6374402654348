"""Compare results of evaluations with each other, or with what commands print."""

import json
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest


def leaves(plain: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each number and text of JSON with its place, without what only files can say."""
    if isinstance(plain, dict | list):
        pairs = plain.items() if isinstance(plain, dict) else enumerate(plain)
        for name, value in pairs:
            if name == "patients":
                name = "clusters"  # files name the column of clusters
            if name not in ("read", "notes", "warnings"):
                yield from leaves(value, f"{path}/{name}")
    else:  # JSON has neither infinite numbers nor NaN
        yield path, None if plain in (inf, -inf) or plain != plain else plain


def assert_alike(found: Any, expected: Any, rel: float = 1e-6) -> None:
    """Compare two results as JSON, but for notes and for what only files have."""
    told, wanted = (
        dict(leaves(json.loads(json.dumps(each)))) for each in (found, expected)
    )
    assert told.keys() == wanted.keys()
    for place, value in wanted.items():
        if isinstance(value, float):
            value = pytest.approx(value, rel=rel, abs=rel / 10)
        assert told[place] == value, place
