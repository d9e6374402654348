"""Bootstrap intervals against scipy, and counts of resamples against trials that are repeated and sorted."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from torch import Tensor

from mpcs_torch.functional import cllr, equal_error_rate, stratified_bootstrap
from mpcs_torch.functional.detection.bootstrap import TrialDraws, turning_points
from mpcs_torch.functional.detection.errors import ErrorCounts, area_under_roc, count_errors, hull_of


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


Drawn = tuple[Tensor, Tensor, TrialDraws]


@st.composite
def resamples(draw: st.DrawFn) -> Drawn:
    """Draw scores with ties and infinities, labels, and how often each trial was drawn."""
    values = st.sampled_from([-torch.inf, -2.0, 0.0, 0.5, 1.0, 1.5, 3.0, torch.inf]) | st.floats(-4, 4)
    trials = draw(st.lists(st.tuples(values, st.booleans()), min_size=2, max_size=40))
    labels = torch.tensor([*(label for _, label in trials), True, False])
    scores = torch.tensor([*(score for score, _ in trials), 0.0, 1.0], dtype=torch.float64)
    counts = []
    for size in (int(labels.sum()), int((~labels).sum())):
        places = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        counts.append(torch.tensor(places).bincount(minlength=size))
    return scores, labels, TrialDraws(*counts)


def repeated_and_sorted(scores: Tensor, labels: Tensor, drawn: TrialDraws) -> ErrorCounts:
    """Count the errors of the trials that were drawn, each repeated as often as it was."""
    strata = [scores[labels].sort().values, scores[~labels].sort().values]
    sample = torch.cat([stratum.repeat_interleave(counts) for stratum, counts in zip(strata, drawn, strict=True)])
    return count_errors(sample, torch.arange(len(sample)) < len(strata[0]))


@given(resamples())
def test_counts_of_a_resample_are_those_of_its_trials(case: Drawn) -> None:
    scores, labels, drawn = case
    ours, expected = drawn.errors(count_errors(scores, labels)), repeated_and_sorted(*case)
    assert [values.tolist() for values in ours] == [values.tolist() for values in expected]


@given(resamples())
def test_turning_points_keep_hull_and_area_of_every_resample(case: Drawn) -> None:
    scores, labels, drawn = case
    counts = count_errors(scores, labels)
    few, expected = drawn.errors(counts.at(turning_points(counts))), repeated_and_sorted(*case)
    assert area_under_roc(few) == area_under_roc(expected)
    for ours, theirs in zip(hull_of(few)[:2], hull_of(expected)[:2], strict=True):
        assert ours.tolist() == theirs.tolist()


def test_trials_in_a_row_of_one_kind_are_one_step() -> None:
    scores, labels = torch.arange(1000.0, dtype=torch.float64), torch.arange(1000) % 100 > 49
    assert len(turning_points(count_errors(scores, labels))) == 21


def test_no_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("resamples must be at least 1, but got 0.")):
        stratified_bootstrap(lambda s, y: s.mean(), *overlapping(0), resamples=0)
