"""The kernel of MPCS against Algorithm 1 in plain Python, for all that rows can be: ties, -0.0, NaN and infinities."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.functional import meta_pattern_concern_score
from mpcs_torch.functional.inputs import arrays
from mpcs_torch.functional.inputs.decisions import highest_class, highest_classes
from tests.oracles import algorithm_1
from tests.refused import Refused

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
LEVELS = st.sampled_from([-0.0, 0.0, 0.125, 0.25, 0.5, 1.0, 3.0])
"""Few values, so that most rows have ties."""


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Draw scores (M, C) of few values, labels and settings; probabilities are exact in half types, too."""
    classes, size = draw(st.integers(2, 9)), draw(st.integers(1, 6))
    is_logits = draw(st.booleans())
    if is_logits:
        level = st.one_of(LEVELS, st.just(-math.inf), st.floats(-30, 30, width=16))
        rows = draw(
            st.lists(
                st.lists(level, min_size=classes, max_size=classes),
                min_size=size,
                max_size=size,
            )
        )
        rows = [row if max(row) > -math.inf else [0.0, *row[1:]] for row in rows]
    else:
        owners = st.lists(st.integers(0, classes - 1), min_size=8, max_size=8)
        zero = st.sampled_from([0.0, -0.0])
        drawn = draw(st.lists(owners, min_size=size, max_size=size))
        rows = [
            [each.count(label) / 8 or draw(zero) for label in range(classes)]
            for each in drawn
        ]
    weight = st.sampled_from([0.25, 1.0, 2.0])
    concern = draw(st.none() | st.lists(weight, min_size=classes**2, max_size=classes**2))
    return {
        "rows": rows,
        "labels": draw(st.lists(st.integers(0, classes - 1), min_size=size, max_size=size)),
        "classes": classes,
        "k": draw(st.integers(1, classes)),
        "t": draw(st.sampled_from([2, 3, 8, 200, 5000])),
        "concern": [[1.0] * classes] * classes
        if concern is None
        else torch.tensor(concern).view(-1, classes).tolist(),
        "is_weighted": concern is not None,
        "is_logits": is_logits,
        "dtype": DTYPES[draw(st.sampled_from(sorted(DTYPES)))],
        "rule": draw(st.sampled_from(["sum", "count"])),
    }


@given(batches())
def test_scores_are_those_of_algorithm_1(drawn: dict[str, Any]) -> None:
    scores = torch.tensor(drawn["rows"], dtype=drawn["dtype"])
    target = torch.tensor(drawn["labels"])
    wide = scores.float() if scores.element_size() == 2 else scores
    probs = wide.softmax(dim=1) if drawn["is_logits"] else wide
    expected = [
        algorithm_1.score_of_sample(
            row, label, drawn["k"], drawn["t"], drawn["concern"], drawn["rule"]
        )
        for row, label in zip(probs.tolist(), drawn["labels"], strict=True)
    ]
    found = meta_pattern_concern_score(
        scores,
        target,
        num_classes=drawn["classes"],
        k=drawn["k"],
        t=drawn["t"],
        concern=torch.tensor(drawn["concern"]) if drawn["is_weighted"] else None,
        from_logits=drawn["is_logits"],
        correct_concern=drawn["rule"],
        reduction="none",
    )
    assert found.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-14)


VALUES = st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, math.inf])


@given(st.data(), st.integers(2, 40), st.integers(1, 5), st.sampled_from(sorted(DTYPES)))
def test_the_highest_classes_are_as_sorted(
    data: st.DataObject, classes: int, size: int, name: str
) -> None:
    rows = data.draw(
        st.lists(
            st.lists(VALUES, min_size=classes, max_size=classes),
            min_size=size,
            max_size=size,
        )
    )
    scores, k = torch.tensor(rows, dtype=DTYPES[name]), data.draw(st.integers(1, classes))
    highest, label = highest_classes(scores, k)
    for row, found, labels in zip(rows, highest.tolist(), label.tolist(), strict=True):
        expected = sorted(range(classes), key=lambda j: (-row[j], j))[:k]
        assert sorted(labels) == sorted(expected)
        assert found == [row[j] for j in expected]
    assert highest_class(scores)[1].tolist() == [
        max(range(classes), key=row.__getitem__) for row in rows
    ]


@given(
    st.lists(
        st.sampled_from([math.nan, -math.inf, 0.0, 1.0, math.inf]), min_size=6, max_size=6
    ),
    st.integers(1, 6),
)
def test_a_row_with_nan_has_nan_as_its_highest_score(row: list[float], k: int) -> None:
    highest, label = highest_classes(torch.tensor([row, [0.0] * 6]), k)
    has_nan = any(math.isnan(value) for value in row)
    assert highest[0, 0].isnan() == has_nan == highest_class(torch.tensor([row]))[0].isnan()
    assert sorted(label[1].tolist()) == list(range(k))  # the row beside it
    assert ((label >= 0) & (label < 6)).all()


def drawn_batch(classes: int, size: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(classes + size)
    return 3 * torch.randn(size, classes, generator=generator), torch.randint(
        0, classes, (size,), generator=generator
    )


@pytest.mark.parametrize("classes", [10, 40])
def test_a_score_does_not_depend_on_its_batch(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    preds, target = drawn_batch(classes, 3001)
    settings: dict[str, Any] = {"num_classes": classes, "reduction": "none"}
    whole = meta_pattern_concern_score(preds, target, **settings)
    for size in (1, 37, 1024, 1500):
        batches = zip(preds.split(size), target.split(size), strict=True)
        of_batches = [meta_pattern_concern_score(*batch, **settings) for batch in batches]
        torch.testing.assert_close(torch.cat(of_batches), whole, rtol=1e-15, atol=0)
    monkeypatch.setattr(arrays, "CHUNK", 1000 * classes)
    torch.testing.assert_close(
        meta_pattern_concern_score(preds, target, **settings), whole, rtol=1e-15, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_samples_are_ignored_in_every_part(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 10_000)
    preds, target = drawn_batch(10, 3001)
    preds, kept = preds.to(dtype), torch.arange(3001) % 3 > 0
    expected = meta_pattern_concern_score(
        preds[kept], target[kept], num_classes=10, reduction="none"
    )
    preds[~kept], target[~kept] = float("nan"), -1
    found = meta_pattern_concern_score(
        preds, target, num_classes=10, ignore_index=-1, reduction="none"
    )
    torch.testing.assert_close(found[kept], expected, rtol=1e-15, atol=0)
    assert not found[~kept].any()


@pytest.mark.parametrize("bad", [float("nan"), -float("nan"), float("inf"), -1.0])
def test_a_bad_value_in_a_large_batch_is_named(bad: float) -> None:
    preds, target = drawn_batch(10, 2000)
    probs = preds.softmax(dim=1)
    probs[1234, 2] = bad
    with Refused("probabilities", "preds", sample=1234):
        meta_pattern_concern_score(probs, target, num_classes=10, from_logits=False)
    if bad != -1:
        with Refused("logits", "preds", sample=1234):
            meta_pattern_concern_score(probs, target, num_classes=10)


def test_unchecked_nan_gives_nan() -> None:
    preds, target = drawn_batch(10, 300)
    preds[1, 3] = float("nan")
    metric = MetaPatternConcernScore(10, validate_args=False)
    metric.update(preds, target)
    assert metric.compute().isnan()


def test_of_many_ties_the_lowest_classes_are_kept() -> None:
    """In bfloat16, most rows tie for the last rank."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 300, generator=generator).bfloat16()
    highest, label = highest_classes(scores, 5)
    expected = scores.argsort(dim=1, descending=True, stable=True)[:, :5]
    assert label.sort(dim=1).values.equal(expected.sort(dim=1).values)
    assert highest.equal(scores.gather(1, expected))
