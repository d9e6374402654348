"""The choice of a calibration and of a decision factor: by hand, and how well it chooses among noisy options."""

import pytest
import torch
from sklearn.metrics import log_loss
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning.factor_choice import (
    FACTORS,
    best_calibration,
    calibrated,
    choose_factor,
    decide,
    effects_of_factors,
    harm_matrix,
    log_score,
    softened,
)

CONCERN = ConcernSpec(3, releases=[[0, 1], [1, 0]], factor=0.5)
HARM = harm_matrix(CONCERN)


def sample(size: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labels, and the logits of a model and of a worse one whose errors are correlated with it."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, 3, (size,), generator=generator)
    noise, further = torch.randn(2, size, 3, generator=generator)
    better = 2.0 * torch.eye(3)[target] + noise
    return target, better, better + 0.3 * further


def test_decisions_and_costs_by_hand() -> None:
    probs = torch.tensor([[0.45, 0.0, 0.55], [0.3, 0.3, 0.4]], dtype=torch.float64)
    assert softened(HARM, 0.1).tolist()[0] == pytest.approx([0, 0.1, 1])
    assert decide(probs, HARM, 1.0).tolist() == [2, 2]
    # In the second row, the decision 2 costs 0.6, and 0 costs 0.4 + 0.03.
    assert decide(probs, HARM, 0.1).tolist() == [2, 0]


def test_effects_are_expected_by_the_probabilities() -> None:
    _, logits, _ = sample(500, 0)
    probs = logits.double().softmax(dim=1)
    effects = effects_of_factors(probs, HARM)
    assert [effect.factor for effect in effects] == list(FACTORS)
    assert effects[0][1:] == (0, 0)
    rows, before = torch.arange(500), probs.argmax(dim=1)
    after = decide(probs, HARM, 0.1)
    changes = [
        (of_class[rows, after] - of_class[rows, before]).mean().item()
        for of_class in (probs, probs @ HARM)
    ]
    assert effects[-1][1:] == pytest.approx(changes)
    assert max(changes) < 0


def test_the_score_is_that_of_scikit_learn_for_the_class_and_for_no_harm() -> None:
    target, logits, _ = sample(400, 7)
    probs = logits.double().softmax(dim=1)
    unharmed = 1 - (probs * HARM[target]).sum(dim=1)
    safe = torch.stack([1 - unharmed, unharmed], dim=1)
    expected = log_loss(target, probs) + log_loss(torch.ones(400), safe, labels=[0, 1])
    assert log_score(probs, target, HARM).mean().item() == pytest.approx(expected)


def test_the_calibration_with_the_better_score_is_taken() -> None:
    one_way = harm_matrix(ConcernSpec(3, releases=[[0, 1]]))
    target, logits, _ = sample(2000, 1)
    shifted = logits + torch.tensor([0.0, 0.0, 1.5])
    assert best_calibration(shifted, target, one_way).method == "vector"
    few = best_calibration(logits[:60], target[:60], one_way)
    # The odds are right, and 60 samples are few for six parameters.
    assert few.method == "temperature"
    assert torch.equal(few.probs, calibrated(logits[:60], target[:60], "temperature"))
    assert few.score == pytest.approx(
        log_score(few.probs, target[:60], one_way).mean().item()
    )
    # Margins of equal size shift no class.
    assert best_calibration(shifted, target, HARM).method == "temperature"


def accurate_but_overconfident(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw labels, logits that are right in 94 % and as sure where they are wrong, and others that know their errors.

    No temperature makes the first ones as good by their log score, although they are right more often.
    """
    generator = torch.Generator().manual_seed(1)
    target = torch.randint(0, 3, (size,), generator=generator)
    overconfident = 8 * torch.eye(3)[target] + 0.1 * torch.randn(
        size, 3, generator=generator
    )
    is_wrong = torch.rand(size, generator=generator) < 0.06
    overconfident[is_wrong] = overconfident[is_wrong].roll(1, dims=1)
    aware = 2 * torch.eye(3)[target] + 0.01 * torch.randn(size, 3, generator=generator)
    is_unsure = torch.rand(size, generator=generator) < 0.1
    aware[is_unsure] = 0.3 * torch.eye(3)[(target[is_unsure] + 1) % 3]
    return target, overconfident, aware


def test_no_factor_makes_up_for_a_clear_loss_of_accuracy_against_other_decisions() -> None:
    target, plain, aware = accurate_but_overconfident(4000)
    probs, before = calibrated(aware, target, "temperature"), plain.argmax(dim=1)
    assert choose_factor(probs, target, HARM, 0.0005, before=before) is None
    assert choose_factor(probs, target, HARM, 0.0005) is not None
    assert (
        choose_factor(probs, target, HARM, 0.5, before=plain.roll(1, dims=1).argmax(dim=1))
        is not None
    )


def test_a_loss_in_few_clusters_is_not_clear() -> None:
    """Each of 120 samples 20 times: 6 fewer are right, which 2400 independent samples would show clearly."""
    target, plain, aware = accurate_but_overconfident(4000)
    copied = torch.arange(240, 360).repeat_interleave(20)
    target, plain, aware = target[copied], plain[copied], aware[copied]
    probs, before = calibrated(aware, target, "temperature"), plain.argmax(dim=1)
    assert (aware.argmax(dim=1) == target).sum() - (before == target).sum() == -6 * 20
    clusters = torch.arange(120).repeat_interleave(20)
    assert choose_factor(probs, target, HARM, 0.0005, factors=(1.0,), before=before) is None
    assert (
        choose_factor(
            probs, target, HARM, 0.0005, factors=(1.0,), before=before, clusters=clusters
        )
        == 1
    )


def test_a_factor_costs_no_more_accuracy_than_allowed_and_the_more_is_allowed_the_lower_it_is() -> (
    None
):
    target, logits, _ = sample(3000, 6)
    probs = calibrated(logits, target, "temperature")
    by_factor = {effect.factor: effect for effect in effects_of_factors(probs, HARM)}
    chosen = [
        choose_factor(probs, target, HARM, allowed) for allowed in (0.0, 0.001, 0.01, 0.1)
    ]
    for factor, allowed in zip(chosen, (0.0, 0.001, 0.01, 0.1), strict=True):
        assert factor is not None
        assert by_factor[factor].right >= -allowed
        assert by_factor[factor].harm <= 0
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] == 1 > chosen[-1]
