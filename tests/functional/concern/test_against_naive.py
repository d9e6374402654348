"""MPCS of 100 000 random samples against Algorithm 1 in plain Python: edges of intervals, ties and certain rows."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch.functional import meta_pattern_concern_score
from tests.oracles import algorithm_1

ROWS, BATCHES = 400, 25
CLASSES = (2, 3, 5, 10, 33)
INTERVALS = (2, 7, 20, 100, 200, 5000)


def edges(rows: int, classes: int, t: int, generator: torch.Generator) -> Tensor:
    """Draw rows whose confidences all lie on edges i / t, with many ties."""
    owners = torch.randint(
        0,
        int(torch.randint(1, classes + 1, (), generator=generator)),
        (rows, t),
        generator=generator,
    )
    counts = torch.zeros(rows, classes, dtype=torch.float64)
    return counts.scatter_add(1, owners, torch.ones(rows, t, dtype=torch.float64)) / t


def near_edges(rows: int, classes: int, t: int, generator: torch.Generator) -> Tensor:
    """Draw rows whose confidences lie a few roundings beside edges."""
    steps = torch.randint(-2, 3, (rows, classes), generator=generator)
    return (edges(rows, classes, t, generator) * (1 + steps * 2.0**-52)).clamp(max=1)


def saturated(rows: int, classes: int, t: int, generator: torch.Generator) -> Tensor:
    """Draw rows that are certain, or all but certain."""
    return (
        50 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    ).softmax(dim=1)


def smooth(rows: int, classes: int, t: int, generator: torch.Generator) -> Tensor:
    """Draw rows of any confidence."""
    return (
        3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    ).softmax(dim=1)


def tied_logits(rows: int, classes: int, t: int, generator: torch.Generator) -> Tensor:
    """Draw logits of few values, -infinity and -0 among them; the first is finite."""
    values = torch.tensor([-math.inf, -0.0, 0.0, 0.125, 0.25, 0.5, 1.0, 3.0])
    places = torch.randint(0, len(values), (rows, classes), generator=generator)
    return values[torch.cat([places[:, :1].clamp(min=1), places[:, 1:]], dim=1)]


DRAWS = [edges, near_edges, saturated, smooth, tied_logits]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
@pytest.mark.parametrize("classes", CLASSES)
def test_score_equals_algorithm_1(classes: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(classes)
    draw = random.Random(classes)
    for batch in range(BATCHES):
        t, k = draw.choice(INTERVALS), draw.randint(1, min(classes, 6))
        kind = draw.choice(DRAWS)
        preds = kind(ROWS, classes, t, generator).to(dtype)
        from_logits = kind is tied_logits
        wide = preds.float() if preds.element_size() == 2 else preds
        probs = wide.softmax(dim=1) if from_logits else wide
        target = torch.randint(0, classes, (ROWS,), generator=generator)
        concern = None
        if batch % 2:
            shape = (classes, classes)
            concern = 0.05 + torch.rand(shape, generator=generator, dtype=torch.float64)
        weights = torch.ones(classes, classes) if concern is None else concern
        plain: dict[str, Any] = {"k": k, "t": t, "concern": weights.tolist()}
        for rule in ("sum", "count"):
            scores = meta_pattern_concern_score(
                preds,
                target,
                num_classes=classes,
                k=k,
                t=t,
                concern=concern,
                from_logits=from_logits,
                correct_concern=rule,
                reduction="none",
            )
            expected = [
                algorithm_1.score_of_sample(row, label, **plain, correct_concern=rule)
                for row, label in zip(probs.tolist(), target.tolist(), strict=True)
            ]
            torch.testing.assert_close(
                scores, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-15
            )


@pytest.mark.parametrize("t", [*INTERVALS, 2**29])
def test_intervals_of_float32_are_exact_and_those_of_float64_to_rounding(t: int) -> None:
    """Read the interval of a true class from its score: 0 from certainty on, and higher the lower it is."""
    draw = random.Random(t)
    exact_edges = [draw.randint(0, t) / t for _ in range(1000)]
    numbers = [*exact_edges, *(draw.random() for _ in range(1000))]
    values = torch.tensor(numbers, dtype=torch.float64)
    values = values[values > 0.5]  # the first class is the most probable one
    for confidence in (values, values.float()):
        probs = torch.stack([confidence, 1 - confidence], dim=1)
        target = torch.zeros(len(confidence)).long()
        scores = meta_pattern_concern_score(
            probs, target, num_classes=2, k=1, t=t, from_logits=False, reduction="none"
        )
        for score, number in zip(scores.tolist(), confidence.tolist(), strict=True):
            product = Fraction(number) * t
            # In float64, a number that rounding cannot tell from an edge may be on either side of it.
            to_edge = abs(round(product) - product)
            is_at_edge = to_edge <= Fraction(2.0**-52) * product
            if is_at_edge and confidence.dtype == torch.float64:
                continue
            exact = -math.log(min(math.floor(product), t - 1) / (t - 1))
            assert score == pytest.approx(exact, rel=1e-12, abs=1e-15)
