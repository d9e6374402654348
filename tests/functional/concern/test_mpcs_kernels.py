"""The kernel of MPCS for all that rows can be: ties, -0.0, NaN and infinities, in batches and parts of any size."""

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
from tests.refused import Refused

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


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
