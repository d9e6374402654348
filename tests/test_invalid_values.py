"""Errors about invalid arguments are data: the argument, the rule, the value, and the sample."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpcs_torch import functional, metrics
from mpcs_torch.errors import InvalidValueError

PROBS = torch.tensor([[0.7, 0.3], [0.4, 0.6]])
SUMS = torch.tensor([[0.7, 0.3], [0.4, 0.7]])
LABELS = torch.tensor([0, 1])
WEIGHTS = {"sample_weight": LABELS}
CASES: dict[str, tuple[Callable[[], Any], str, int | None]] = {
    "probabilities": (
        lambda: functional.brier_score(SUMS, LABELS, num_classes=2, from_logits=False),
        "preds",
        1,
    ),
    "labels": (
        lambda: functional.brier_score(PROBS, LABELS + 1, num_classes=2, from_logits=False),
        "target",
        1,
    ),
    "logits": (
        lambda: functional.cross_entropy(PROBS.log() * torch.nan, LABELS, num_classes=2),
        "preds",
        0,
    ),
    "scores of trials": (
        lambda: functional.equal_error_rate(torch.tensor([0.1, torch.nan]), LABELS),
        "preds",
        1,
    ),
    "weights of scores": (
        lambda: metrics.RiskCoverageArea(2)(PROBS, LABELS, **WEIGHTS),
        "sample_weight",
        None,
    ),
    "weights by place": (
        lambda: metrics.ProbabilityAccuracy(2)(PROBS, LABELS, LABELS),
        "sample_weight",
        None,
    ),
    "weights of trials": (
        lambda: metrics.EqualErrorRate()(LABELS, LABELS, **WEIGHTS),
        "sample_weight",
        None,
    ),
    "a share as text": (
        lambda: metrics.RiskAtCoverage(2, coverage="0.8"),
        "coverage",
        None,
    ),  # type: ignore[arg-type]
    "a setting": (lambda: metrics.MetaPatternConcernScore(3, k=4), "k", None),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_says_which_argument_breaks_which_rule_where(name: str) -> None:
    call, argument, sample = CASES[name]
    with pytest.raises(InvalidValueError) as refused:
        call()
    assert (refused.value.argument, refused.value.sample) == (argument, sample)
    assert str(refused.value.rule) in str(refused.value)
    assert isinstance(refused.value, ValueError)


def test_the_value_of_the_first_bad_sample_is_quoted() -> None:
    with pytest.raises(InvalidValueError) as refused:
        metrics.BrierScore(2, from_logits=False).update(SUMS, LABELS)
    assert refused.value.value == pytest.approx([0.4, 0.7])
    assert "sample 1 has [0.4, 0.7]" in str(refused.value)
