"""The choice among models and decision factors: by hand, and how well it chooses among noisy options."""

from collections.abc import Sequence

import pytest
import torch
from sklearn.metrics import log_loss
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning.choice import (
    FACTORS,
    HARM,
    RIGHT,
    Option,
    Options,
    calibrated,
    calibration_for,
    decide,
    harm_matrix,
    log_score,
    softened,
)

CONCERN = ConcernSpec(3, releases=[[0, 1], [1, 0]], factor=0.5)
HARM_MATRIX = harm_matrix(CONCERN)


def sample(size: int, seed: int, strength: float = 2.0) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labels, and the logits of a model and of a better one whose errors are correlated with it."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, 3, (size,), generator=generator)
    noise, own = torch.randn(2, size, 3, generator=generator)
    plain = strength * torch.eye(3)[target] + noise
    return target, plain, plain + 0.3 * own


def options_of(logits: Sequence[Tensor], target: Tensor, harm: Tensor, factors: Sequence[float] = FACTORS) -> Options:
    probs = [calibrated(each, target, calibration_for(harm)) for each in logits]
    return Options.from_probs(probs, target, harm, factors)


def test_decisions_and_costs_by_hand() -> None:
    probs = torch.tensor([[0.45, 0.0, 0.55], [0.3, 0.3, 0.4]], dtype=torch.float64)
    assert softened(HARM_MATRIX, 0.1).tolist()[0] == pytest.approx([0, 0.1, 1])
    assert decide(probs, HARM_MATRIX, 1.0).tolist() == [2, 2]
    assert decide(probs, HARM_MATRIX, 0.1).tolist() == [2, 0]  # the costs of 2 are 0.6, of 0 0.4 + 0.03


def test_counts_are_changes_against_the_most_probable_class_of_the_first_model() -> None:
    target, plain, other = sample(500, 0)
    options = options_of([plain, other], target, HARM_MATRIX)
    assert len(options.options) == 2 * len(FACTORS)
    assert not options.counted[0].any()
    assert not options.estimated[0].any()
    place = options.options.index(Option(1, 1.0))
    before, after = plain.argmax(dim=1), other.argmax(dim=1)
    gain = (after == target).double() - (before == target).double()
    assert torch.equal(options.counted[place, RIGHT], gain)
    harm = HARM_MATRIX[target, after] - HARM_MATRIX[target, before]
    assert torch.equal(options.counted[place, HARM], harm)


def test_the_score_is_that_of_scikit_learn_for_the_class_and_for_no_harm() -> None:
    target, plain, _ = sample(400, 7)
    probs = plain.double().softmax(dim=1)
    unharmed = 1 - (probs * HARM_MATRIX[target]).sum(dim=1)
    safe = torch.stack([1 - unharmed, unharmed], dim=1)
    expected = log_loss(target, probs) + log_loss(torch.ones(400), safe, labels=[0, 1])
    assert log_score(probs, target, HARM_MATRIX).mean().item() == pytest.approx(expected)


def test_the_plain_model_is_chosen_where_nothing_is_better() -> None:
    target, plain, _ = sample(2000, 3, strength=6.0)
    worse = plain.roll(1, dims=1)
    options = options_of([plain, worse], target, HARM_MATRIX)
    assert options.options[options.choose(0.0)].model == 0


def test_a_model_that_is_clearly_better_is_chosen() -> None:
    target, plain, _ = sample(3000, 4, strength=1.0)
    better = plain + 1.5 * torch.eye(3)[target]
    options = options_of([plain, better], target, HARM_MATRIX)
    assert options.options[options.choose(0.0005)].model == 1


def accurate_but_overconfident(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labels, logits that are right in 94 % and as sure where they are wrong, and others that know their errors.

    No temperature makes the first ones as good by their log score, although they are right more often.
    """
    generator = torch.Generator().manual_seed(1)
    target = torch.randint(0, 3, (size,), generator=generator)
    overconfident = 8 * torch.eye(3)[target] + 0.1 * torch.randn(size, 3, generator=generator)
    is_wrong = torch.rand(size, generator=generator) < 0.06
    overconfident[is_wrong] = overconfident[is_wrong].roll(1, dims=1)
    aware = 2 * torch.eye(3)[target] + 0.01 * torch.randn(size, 3, generator=generator)
    is_unsure = torch.rand(size, generator=generator) < 0.1
    aware[is_unsure] = 0.3 * torch.eye(3)[(target[is_unsure] + 1) % 3]
    return target, overconfident, aware


def test_a_better_score_does_not_make_up_for_a_clear_loss_of_accuracy() -> None:
    target, plain, aware = accurate_but_overconfident(4000)
    options = options_of([plain, aware], target, HARM_MATRIX)
    assert options.ranking() == [1, 0]
    assert options.options[options.choose(0.0005)].model == 0


def test_a_loss_in_few_clusters_is_not_clear() -> None:
    """Each of 120 samples 20 times: 6 fewer are right, which 2400 independent samples would show clearly."""
    drawn = accurate_but_overconfident(4000)
    target, plain, aware = (each[240:360].repeat_interleave(20, dim=0) for each in drawn)
    options = options_of([plain, aware], target, HARM_MATRIX, factors=(1.0,))
    assert options.counted[1, RIGHT].sum() == -6 * 20
    assert options.options[options.choose(0.0005)].model == 0
    assert options.options[options.choose(0.0005, torch.arange(120).repeat_interleave(20))].model == 1


@pytest.mark.slow
def test_scores_choose_the_better_model_more_often_than_counts() -> None:
    """From 300 samples at a time, of models that differ by less than the noise of counts."""
    target, better, noisier = sample(30_000, 5)
    right = {"scores": 0, "counts": 0}
    for part in range(100):
        at = slice(300 * part, 300 * (part + 1))
        options = options_of([noisier[at], better[at]], target[at], HARM_MATRIX, factors=(1.0,))
        right["scores"] += options.choose(0.0005) == 1
        counted = options.counted.mean(dim=2)
        right["counts"] += bool(counted[1, RIGHT] >= -0.0005 and counted[1, HARM] < 0)
    assert right["scores"] >= 80
    assert right["scores"] > right["counts"] + 10


def test_a_factor_costs_no_more_accuracy_than_allowed() -> None:
    target, plain, _ = sample(3000, 6)
    for allowed in (0.0, 0.001, 0.01):
        options = options_of([plain], target, HARM_MATRIX)
        chosen = options.estimates()[options.choose(allowed)]
        assert chosen[RIGHT] >= -allowed
        assert chosen[HARM] <= 0
