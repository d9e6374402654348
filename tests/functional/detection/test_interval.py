"""Intervals of error rates against the oracle and scipy."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap

from mpcs_torch.functional import cllr, clopper_pearson, equal_error_rate, meets_rule_of_30, stratified_bootstrap
from tests.conftest import load_oracle

ROWS = load_oracle("detection_cases")["meta"]


@pytest.mark.parametrize("row", ROWS["clopper_pearson"]["rows"], ids=lambda row: f"{row['errors']} of {row['trials']}")
def test_clopper_pearson_equals_the_oracle(row: dict[str, Any]) -> None:
    ours = clopper_pearson(row["errors"], row["trials"], confidence=1 - row["alpha"])
    assert ours == pytest.approx(row["interval"], abs=1e-9)


def test_thirty_errors_are_enough() -> None:
    assert [meets_rule_of_30(errors) for errors in (0, 29, 30, 31)] == [False, False, True, True]


def overlapping(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(300) < 100
    return torch.randn(300, generator=torch.Generator().manual_seed(seed)) + labels, labels


def test_bootstrap_is_close_to_that_of_scipy() -> None:
    scores, labels = overlapping(0)

    def rate(targets: Any, nontargets: Any) -> float:
        both = torch.tensor(np.concatenate([targets, nontargets]))
        return equal_error_rate(both, torch.arange(len(both)) < len(targets)).item()

    theirs = bootstrap(
        (scores[labels].numpy(), scores[~labels].numpy()),
        rate,
        n_resamples=1000,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    low, high = stratified_bootstrap(equal_error_rate, scores, labels)
    assert (low.item(), high.item()) == pytest.approx(tuple(theirs), abs=0.01)


def test_resamples_keep_both_classes_and_their_sizes() -> None:
    scores, labels = overlapping(1)
    counts = set()

    def statistic(drawn: torch.Tensor, drawn_labels: torch.Tensor) -> torch.Tensor:
        counts.add((int(drawn_labels.sum()), len(drawn)))
        assert set(drawn[drawn_labels].tolist()) <= set(scores[labels].double().tolist())
        return torch.stack([drawn.mean(), drawn.max()])

    calls: list[None] = []
    low, high = stratified_bootstrap(
        statistic, scores, labels, resamples=20, confidence=0.5, advance=lambda: calls.append(None)
    )
    assert counts == {(100, 300)}
    assert len(calls) == 20
    assert low.shape == high.shape == (2,)
    assert (low < high).any()


def test_integer_and_infinite_statistics_have_intervals() -> None:
    scores, labels = torch.tensor([-torch.inf, 1.0, 2.0, 0.0]), torch.tensor([1, 1, 1, 0])
    low, high = stratified_bootstrap(cllr, scores, labels, resamples=50)
    assert low.isfinite()
    assert high == torch.inf
    low, high = stratified_bootstrap(lambda s, y: y.sum(), scores, labels, resamples=3)
    assert (low.item(), high.item()) == (3, 3)


def test_resamples_of_scores_near_chance_do_not_warn() -> None:
    labels = torch.arange(20) % 2
    stratified_bootstrap(equal_error_rate, torch.arange(20.0), labels, resamples=20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson(0, 0), "trials must be at least 1, but got 0."),
        (lambda: clopper_pearson(4, 3), "errors must be from 0 to trials (3), but got 4."),
        (lambda: clopper_pearson(-1, 3), "errors must be from 0 to trials (3), but got -1."),
        (lambda: clopper_pearson(1, 3, confidence=95), "confidence must be between 0 and 1, but got 95."),
        (
            lambda: stratified_bootstrap(lambda s, y: s.mean(), *overlapping(0), resamples=0),
            "resamples must be at least 1, but got 0.",
        ),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
