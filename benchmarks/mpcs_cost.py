"""Time MPCS as a multiple of F.cross_entropy and of one `torch.topk`. Run: python -m benchmarks.mpcs_cost."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torchmetrics.classification import MulticlassF1Score

from benchmarks.rounds import quickest
from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.functional import meta_pattern_concern_score

FROM_LOGITS = {(60000, 10): 3.0, (50000, 1000): 1.5, (4096, 50257): 1.5}
"""The most multiples of cross entropy, by shape."""
FROM_PROBABILITIES = 3.0
"""The most multiples of topk at (60000, 10)."""
UPDATE = 1.15
"""The most multiples of the function at (60000, 10)."""
STEP = 3.0
"""The most multiples of torchmetrics' macro F1 for an update of (64, 10)."""


def drawn(size: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw logits and labels."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(size, classes, generator=generator)
    return logits, torch.randint(0, classes, (size,), generator=generator)


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> float:
    """Return the quickest of many rounds of each, taken in turns."""
    slow, quick = quickest((ours, theirs), rounds)
    return slow / quick


def from_logits(shape: tuple[int, int]) -> float:
    """Return the cost of MPCS from logits in multiples of cross entropy, k = 5 and t = 200."""
    logits, target = drawn(*shape)
    return ratio(
        lambda: meta_pattern_concern_score(logits, target, num_classes=shape[1]),
        lambda: cross_entropy(logits, target),
        rounds=15,
    )


def from_probabilities() -> float:
    """Return the cost of MPCS from probabilities in multiples of topk at (60000, 10)."""
    logits, target = drawn(60000, 10)
    probs = logits.softmax(dim=1)
    return ratio(
        lambda: meta_pattern_concern_score(
            probs, target, num_classes=10, from_logits=False
        ),
        lambda: torch.topk(probs, 5),
        rounds=60,
    )


def update() -> float:
    """Return the cost of the Metric's update with checks in multiples of its function at (60000, 10)."""
    logits, target = drawn(60000, 10)
    metric = MetaPatternConcernScore(10)
    return ratio(
        lambda: metric.update(logits, target),
        lambda: meta_pattern_concern_score(logits, target, num_classes=10),
        rounds=60,
    )


def step() -> float:
    """Return the cost of an update with 64 samples of 10 classes in multiples of torchmetrics' macro F1."""
    logits, target = drawn(64, 10)
    metrics: tuple[Any, Any] = (
        MetaPatternConcernScore(10),
        MulticlassF1Score(10, average="macro"),
    )
    ours, theirs = metrics
    return ratio(
        lambda: ours.update(logits, target),
        lambda: theirs.update(logits, target),
        rounds=2000,
    )


if __name__ == "__main__":
    for shape, limit in FROM_LOGITS.items():
        print(
            f"MPCS from logits {shape}: {from_logits(shape):.2f} times F.cross_entropy (limit {limit})"
        )
    print(
        f"MPCS from probabilities (60000, 10): {from_probabilities():.2f} times topk (limit {FROM_PROBABILITIES})"
    )
    print(
        f"its Metric.update (60000, 10): {update():.2f} times the function (limit {UPDATE})"
    )
    print(
        f"its Metric.update (64, 10): {step():.2f} times torchmetrics' macro F1 (aim {STEP})"
    )
