"""Effects over seeds, and the measures of one run."""

import numpy as np
import pytest
import torch
from scipy.stats import ttest_rel

from examples.benchmark.measures import (
    calibrated_probs,
    difference,
    geometric_mean,
    measure,
    normalized,
    reduction,
    refer,
)
from examples.benchmark.runs import Outcome
from mpcs_torch import ConcernSpec
from mpcs_torch.learning.choice import decide

GENERATOR = np.random.default_rng(0)
CONCERN = ConcernSpec(3, releases=[[0, 1], [1, 0]], factor=0.5)


def test_a_difference_has_the_interval_of_the_paired_t_test() -> None:
    ours, theirs = GENERATOR.normal(size=(2, 8))
    interval = ttest_rel(ours, theirs).confidence_interval()
    found = difference(ours.tolist(), theirs.tolist())
    assert found == pytest.approx((np.mean(ours - theirs), interval.low, interval.high))


def test_intervals_of_reductions_hold_as_often_as_they_say() -> None:
    held, truth = 0, 0.2
    for _ in range(400):
        hard = GENERATOR.gamma(20, size=20)  # some seeds are harder for both
        theirs, ours = GENERATOR.poisson(2 * hard), GENERATOR.poisson(2 * hard * (1 - truth))
        held += reduction(ours.tolist(), theirs.tolist()).low <= truth <= reduction(ours.tolist(), theirs.tolist()).high
    assert 0.91 <= held / 400 <= 0.985


def test_reductions_of_nothing() -> None:
    assert reduction([0, 0], [0, 0]).value == 0
    assert reduction([1, 0], [0, 0]).value == -np.inf


def test_the_geometric_mean_of_one_task_is_its_reduction() -> None:
    ours, theirs = GENERATOR.uniform(100, 200, size=(2, 20))
    assert geometric_mean([(ours, theirs)]).value == pytest.approx(1 - ours.mean() / theirs.mean(), abs=0.01)
    halved = geometric_mean([(theirs / 2, theirs), (theirs, theirs)])
    assert halved.value == pytest.approx(1 - 0.5**0.5, abs=0.01)
    assert halved.low < halved.value < halved.high


def test_decisions_are_measured_by_hand() -> None:
    found = measure(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 0, 2]), CONCERN)
    assert found == pytest.approx((0.25, 0.5))


def outcome(size: int, strength: float) -> Outcome:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 3, (2, size), generator=generator)
    logits = torch.randn(2, size, 3, generator=generator) + strength * torch.eye(3)[labels]
    return Outcome(logits[0], labels[0], logits[1], labels[1])


def test_referral_keeps_the_limit_and_too_few_samples_refer_all() -> None:
    referral = refer(outcome(4000, 3.0), CONCERN, 0.005)
    assert 0.3 < referral.coverage < 1
    assert referral.dangerous < 0.008
    assert refer(outcome(50, 4.0), CONCERN, 0.01) == (0.0, 0.0)


def test_normalized_logits_keep_the_most_probable_class() -> None:
    before = outcome(100, 1.0)
    after = normalized(before)
    assert (after.test.argmax(dim=1) == before.test.argmax(dim=1)).all()
    torch.testing.assert_close(torch.linalg.vector_norm(after.test, 4.0, dim=1), torch.ones(100))


def test_a_lower_factor_makes_fewer_dangerous_errors() -> None:
    found = outcome(4000, 1.5)
    harm = CONCERN.dangerous_pairs().double()
    probs = calibrated_probs(found, harm)
    measures = [measure(decide(probs, harm, factor), found.test_labels, CONCERN) for factor in (1, 0.1)]
    assert measures[0].dangerous > measures[1].dangerous
