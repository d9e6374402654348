"""Compare results of evaluations with each other, or with what commands print."""

import json
from collections.abc import Collection, Iterator
from math import inf, nan
from typing import Any

import pytest
from pandas.testing import assert_frame_equal

from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.scores import Scores

KEYS, NUMBERS = ["model", "column", "group", "metric"], ["value", "low", "high", "p_value"]


ROUNDING = 2e-4
"""Of the width of an interval: ends are found by bisection."""


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
    told, wanted = [
        dict(leaves(json.loads(json.dumps(each)))) for each in (found, expected)
    ]
    assert told.keys() == wanted.keys()
    for place, value in wanted.items():
        if isinstance(value, float):
            value = pytest.approx(value, rel=rel, abs=rel / 10)
        assert told[place] == value, place


def assert_same_numbers(
    one: Result[Any],
    other: Result[Any],
    *,
    near: float = ROUNDING,
    skipped: Collection[str] = (),
    one_end: Collection[str] = (),
) -> None:
    """Compare the values, intervals and p-values that both results have.

    Ends of intervals may differ by the share ``near`` of the width; beyond rounding, p-values are not compared. Of the
    metrics in ``one_end``, only the value and one end of the interval need be the same.
    """
    frames = [each.to_frame().set_index(KEYS)[NUMBERS] for each in (one, other)]
    frames = [each[~each.index.isin(skipped, level="metric")] for each in frames]
    index = frames[0].index.intersection(frames[1].index)
    assert len(index) > 2
    first, second = [each.loc[index] for each in frames]
    assert_frame_equal(first[["value"]], second[["value"]], rtol=1e-5, atol=1e-6)
    ends = first[["low", "high"]]
    assert ends.isna().equals(second[["low", "high"]].isna())
    moved = (ends - second[["low", "high"]]).abs()
    farthest = moved.max(axis=1)
    is_open = index.isin(one_end, level="metric")
    farthest[is_open] = moved[is_open].min(axis=1)
    is_near = farthest <= 1e-6 + near * (ends.high - ends.low)
    assert (is_near | farthest.isna()).all(), index[~is_near]
    if near == ROUNDING:
        p_values = (each.loc[~is_open, ["p_value"]] for each in (first, second))
        assert_frame_equal(*p_values, rtol=1e-4, atol=1e-6)


def assert_same_scores(found: Scores, expected: Scores, *, near: float = ROUNDING) -> None:
    """Check that scores of a group have the values, intervals and reasons of its rows alone.

    Ends of intervals may differ by the share ``near`` of the width.
    """
    assert found.rows == expected.rows
    for name, value in found.values.items():
        assert value == pytest.approx(expected.values[name], nan_ok=True), name
        assert type(value) is type(expected.values[name]), name
        ends = found.intervals.get(name, (nan, nan))
        low, high = expected.intervals.get(name, (nan, nan))
        moved = 1e-9 + near * (high - low)
        assert ends == pytest.approx((low, high), abs=moved, nan_ok=True), name
    reasons = {
        name: reason
        for name, reason in expected.without_interval.items()
        if name in found.values
    }
    assert found.without_interval == reasons
    # Groups have these only if they are named.
    of_histograms = ("measured_", "calibration_slope")
    for name in expected.values.keys() - found.values.keys():
        assert name.startswith(of_histograms)
