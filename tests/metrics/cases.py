"""One case per public Metric: how to make it, feed it, and know its value without it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, DangerousErrors, ExpectedConcern, MetaPatternConcernScore
from mpcs_torch.functional.dangerous import count_dangerous
from mpcs_torch.functional.expected_concern import sum_costs
from mpcs_torch.functional.mpcs import pattern_terms, score_terms
from mpcs_torch.metrics.base import SumMetric
from tests.oracles import algorithm_1

CLASSES = 4
CONCERN = ConcernSpec(CLASSES, releases=[[0, 1], [2, 3, 1]], factor=0.25)

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class MetricCase:
    """What the laws need to know of a metric."""

    make: Callable[..., SumMetric]
    """With more settings by keyword."""
    higher_is_better: bool
    make_other: Callable[[], SumMetric]
    """Other settings, whose value is the same on `agreeing_batch` and another one on other batches."""
    agreeing_batch: Batch
    oracle: Callable[[Batch], dict[str, float]]
    """The values of a batch from plain Python; a single value is named after nothing."""
    core: Callable[[Tensor, Tensor], Any]
    """What `update` computes, as a function to compile."""


def random_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return (
        2 * torch.randn(size, CLASSES, generator=generator),
        torch.randint(0, CLASSES, (size,), generator=generator),
    )


def mpcs_oracle(batch: Batch) -> dict[str, float]:
    logits, target = batch
    concern = CONCERN.matrix().tolist()
    return {"": algorithm_1.score(logits.softmax(dim=1).tolist(), target.tolist(), 3, 20, concern)}


def dangerous_oracle(batch: Batch) -> dict[str, float]:
    logits, target = batch
    predictions = [max(range(CLASSES), key=row.__getitem__) for row in logits.tolist()]
    errors = [(true, guess) for true, guess in zip(target.tolist(), predictions, strict=True) if true != guess]
    dangerous = len([pair for pair in errors if pair not in {(0, 1), (2, 3), (2, 1)}])
    return {
        "dangerous": dangerous,
        "dangerous_rate": dangerous / len(predictions),
        "destructive_rate": dangerous / max(len(errors), 1),
    }


def expected_concern_oracle(batch: Batch) -> dict[str, float]:
    """Decide for the class of least risk, and sum the concern of what is wrong."""
    logits, target = batch
    concern = CONCERN.matrix().tolist()
    cost, constant = 0.0, [0.0] * CLASSES
    for row, true in zip(logits.softmax(dim=1).tolist(), target.tolist(), strict=True):
        risks = [sum(row[i] * concern[i][j] for i in range(CLASSES) if i != j) for j in range(CLASSES)]
        decided = min(range(CLASSES), key=risks.__getitem__)
        cost += concern[true][decided] if decided != true else 0.0
        constant = [total + (concern[true][j] if j != true else 0.0) for j, total in enumerate(constant)]
    return {"": cost / min(constant)}


# In both batches class 0 is true and predicted, and no released class is near.
MPCS_AGREEING = (torch.tensor([[9.0, -9.0, 0.0, 1.0]]), torch.tensor([0]))

CASES = {
    MetaPatternConcernScore: MetricCase(
        make=lambda **settings: MetaPatternConcernScore(CLASSES, k=3, t=20, concern=CONCERN, **settings),
        higher_is_better=False,
        make_other=lambda: MetaPatternConcernScore(CLASSES, k=3, t=20),
        agreeing_batch=MPCS_AGREEING,
        oracle=mpcs_oracle,
        core=lambda logits, target: score_terms(
            pattern_terms(logits.softmax(dim=1), target, k=3, t=20, concern=CONCERN.matrix()),
            k=3,
            correct_concern="sum",
        ),
    ),
    DangerousErrors: MetricCase(
        make=lambda **settings: DangerousErrors(CLASSES, concern=CONCERN, **settings),
        higher_is_better=False,
        make_other=lambda: DangerousErrors(CLASSES),
        agreeing_batch=MPCS_AGREEING,
        oracle=dangerous_oracle,
        core=lambda logits, target: count_dangerous(logits, target, released=CONCERN.released(), ignore_index=None)[0],
    ),
    ExpectedConcern: MetricCase(
        make=lambda **settings: ExpectedConcern(CLASSES, concern=CONCERN, decision="least_concern", **settings),
        higher_is_better=False,
        make_other=lambda: ExpectedConcern(CLASSES, concern=CONCERN),
        agreeing_batch=(torch.tensor([[9.0, -9.0, 0.0, 1.0], [0.0, 9.0, 0.0, 1.0]]), torch.tensor([0, 1])),
        oracle=expected_concern_oracle,
        core=lambda logits, target: sum_costs(
            logits,
            target,
            concern=CONCERN.matrix(),
            decision="least_concern",
            from_logits=True,
            ignore_index=None,
        )[0],
    ),
}


def values_of(computed: Tensor | dict[str, Tensor]) -> dict[str, float]:
    named = computed if isinstance(computed, dict) else {"": computed}
    return {name: value.item() for name, value in named.items()}
