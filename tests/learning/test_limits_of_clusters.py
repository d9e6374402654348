"""Limits of clusters against loops, simulated clusters of unequal sizes, and what a refusal says."""

from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpcs_torch.learning import UnattainableLimitError
from mpcs_torch.learning.guaranteed_limits import LimitedRate

ROW = st.tuples(
    st.integers(0, 3),
    st.integers(0, 5),
    st.integers(0, 5),
    st.tuples(st.booleans(), st.booleans()),
)
"""A row: its cluster, the steps from which its two answers are allowed (5 for never), and whether each is wrong."""
BET = 0.7


def looped(
    rows: list[tuple[int, int, int, tuple[bool, bool]]], step: int, rate: LimitedRate
) -> float:
    """Return the p-value at a step, with the errors of each cluster counted one row at a time."""
    wealth = 1.0
    for cluster in {row[0] for row in rows}:
        errors = counted = 0.0
        for place, (code, *steps, wrong) in enumerate(rows):
            if code != cluster:
                continue
            weight = 1.0 if rate.weights is None else rate.weights[place].item()
            # The first answer that is allowed is given.
            answer = next((k for k in range(2) if steps[k] <= step), None)
            if answer is not None and wrong[answer]:
                errors += weight
            if answer is not None or not rate.is_of_decided:
                counted += weight
        if counted and rate.per_cluster:
            errors, counted = errors / counted, 1.0
        gain = rate.at_most * counted - errors
        wealth *= 1 + BET * gain / ((1 - rate.at_most) * rate.largest)
    return min(1.0, 1 / wealth)


@settings(deadline=None)
@given(st.lists(ROW, min_size=1, max_size=30), st.booleans(), st.booleans(), st.booleans())
def test_a_p_value_is_the_inverse_of_what_bets_gain(
    rows: list[tuple[int, int, int, tuple[bool, bool]]],
    of_decided: bool,
    per_cluster: bool,
    has_weights: bool,
) -> None:
    weights = 1 + torch.arange(len(rows)) % 3 if has_weights else None
    given = LimitedRate(
        "",
        0.2,
        0.95,
        torch.tensor([row[3] for row in rows]),
        torch.ones(len(rows), 2, dtype=torch.bool),
        of_decided,
        clusters=torch.tensor([row[0] for row in rows]),
        per_cluster=per_cluster,
        weights=weights,
    )
    bets = torch.tensor([BET], dtype=torch.float64)
    # Clusters of one sample each are clusters, too.
    rate = given.over_all()._replace(clusters=given.clusters, bets=bets)
    p_values = rate.p_values(torch.tensor([row[1:3] for row in rows]), 5)
    assert p_values.tolist() == pytest.approx(
        [looped(rows, step, rate) for step in range(5)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("per_cluster", [False, True])
@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("times", [1.0, 2.5])
def test_a_limit_that_is_just_broken_passes_in_five_of_a_hundred_at_most(
    per_cluster: bool, shared: float, times: float
) -> None:
    """Large clusters have more errors, and the limit is the true rate; one far above it passes as a rule."""
    random, fits, passed = np.random.default_rng(0), 400, 0
    sizes, rates = np.array([1, 2, 5, 30]), np.array([0.02, 0.05, 0.1, 0.2])
    true_rate = rates.mean() if per_cluster else np.average(rates, weights=sizes)
    for _ in range(fits):
        kind = random.integers(4, size=300)
        clusters = np.repeat(np.arange(300), sizes[kind])
        together, alone = random.random(300)[clusters], random.random(len(clusters))
        is_error = np.where(shared, together, alone) < rates[kind[clusters]]
        loss, codes = torch.from_numpy(is_error)[:, None], torch.from_numpy(clusters)
        rate = LimitedRate(
            "",
            times * true_rate,
            0.95,
            loss,
            torch.ones_like(loss),
            clusters=codes,
            per_cluster=per_cluster,
        ).over_all()
        others, at_once = codes < 60, torch.zeros_like(codes)[:, None]
        bets = rate.at(others).bets_for(at_once[others], 1, times=4)
        passed += rate.at(~others)._replace(bets=bets).passes(at_once[~others], 1).item()
    if times == 1:
        assert passed / fits <= 0.05 + 3 * sqrt(0.05 * 0.95 / fits)
    else:
        assert passed / fits > 0.9


def test_a_refusal_says_what_clusters_can_guarantee_and_as_many_for_any_part_of_them() -> (
    None
):
    """Patients of 1 to 4 images, of which a third have any of the class."""
    random = np.random.default_rng(0)
    clusters = np.repeat(np.arange(4000), random.integers(1, 5, 4000))
    is_ill = random.random(4000)[clusters] < random.random(len(clusters)) / 2
    whole = LimitedRate(
        "it",
        0.05,
        0.95,
        torch.zeros(len(clusters), 1),
        torch.from_numpy(is_ill)[:, None],
        clusters=torch.from_numpy(clusters),
    )
    needed = []
    for first in range(0, 4000, 50):
        part = (clusters >= first) & (clusters < first + 50)
        with pytest.raises(
            UnattainableLimitError, match="like these that have no error"
        ) as refused:
            whole.at(torch.from_numpy(part)).over_all().check_attainable()
        units = len(np.unique(clusters[part & is_ill]))
        assert refused.value.samples == units
        assert refused.value.per_cluster == pytest.approx(1 - 0.05 ** (1 / units))
        assert refused.value.per_cluster < refused.value.lowest
        needed.append(refused.value.needed)
    sizes = np.unique(clusters[is_ill], return_counts=True)[1]
    enough = np.log(20) / np.mean(np.log1p(0.05 * sizes / (0.95 * sizes.max())))
    assert np.median(needed) == pytest.approx(enough, rel=0.1)
    assert np.mean(np.abs(np.array(needed) / enough - 1) < 0.3) > 0.9
