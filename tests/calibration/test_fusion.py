"""Logistic fusion against scikit-learn, against the fusion of one system, and against what is best for Gaussians."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from mpcs_torch.calibration import CalibrationWarning, LogisticCalibration, LogisticFusion
from mpcs_torch.functional import clopper_pearson, equal_error_rate
from tests.calibration.data import scores_of_systems, trials
from tests.refused import Refused


@pytest.mark.parametrize("p_target", [0.5, 0.01, 0.9])
def test_fusion_is_a_weighted_logistic_regression(p_target: float) -> None:
    scores, target = scores_of_systems(0)
    weight = torch.where(
        target == 1, p_target / target.sum(), (1 - p_target) / (1 - target).sum()
    ).double()
    oracle = LogisticRegression(
        C=float("inf"), tol=1e-12, solver="newton-cholesky", max_iter=1000
    )
    oracle.fit(scores.numpy(), target.numpy(), sample_weight=len(target) * weight.numpy())
    found = LogisticFusion(3, p_target).fit(scores, target)
    prior_log_odds = torch.tensor(p_target).double().logit().item()
    torch.testing.assert_close(
        found.weights, torch.from_numpy(oracle.coef_[0]), rtol=1e-6, atol=1e-9
    )
    assert found.bias.item() == pytest.approx(
        oracle.intercept_.item() - prior_log_odds, rel=1e-6
    )


@pytest.mark.filterwarnings("ignore:The weights of the systems are")
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-6, 1e6), shift=st.floats(-1e6, 1e6))
def test_the_scale_of_a_system_does_not_matter(
    seed: int, factor: float, shift: float
) -> None:
    scores, target = scores_of_systems(seed, 100)
    moved = scores.clone()
    moved[:, 1] = factor * (moved[:, 1] + shift)
    plain, again = (
        LogisticFusion(3).fit(given, target)(given) for given in (scores, moved)
    )
    torch.testing.assert_close(again, plain, rtol=1e-5, atol=1e-5)


def test_two_gaussian_systems_reach_the_analytic_equal_error_rate() -> None:
    generator = torch.Generator().manual_seed(0)
    separation = torch.tensor([2.0, 1.5])

    def drawn(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.arange(size) % 2
        return torch.randn(size, 2, generator=generator) + separation * target.unsqueeze(
            1
        ), target

    fusion = LogisticFusion(2).fit(*drawn(20_000))
    scores, target = drawn(100_000)
    found = equal_error_rate(fusion(scores), target).item()
    best = 0.5 * math.erfc(separation.norm().item() / 2 / math.sqrt(2))
    low, high = clopper_pearson(round(found * 100_000), 100_000)
    assert low < best < high
    assert (
        found
        < min(equal_error_rate(scores[:, place], target).item() for place in (0, 1)) - 0.04
    )


def test_a_system_without_information_gets_no_weight() -> None:
    scores, target = trials(0)
    fusion = LogisticFusion(2).fit(
        torch.stack([scores, torch.full_like(scores, 0.1)], dim=1), target
    )
    assert fusion.weights[1] == 0
    torch.testing.assert_close(
        fusion.weights[0], LogisticCalibration().fit(scores, target).scale
    )


def test_the_same_system_twice_shares_its_weight() -> None:
    scores, target = trials(0)
    fusion = LogisticFusion(2).fit(torch.stack([scores, scores], dim=1), target)
    torch.testing.assert_close(
        fusion.weights, LogisticCalibration().fit(scores, target).scale.expand(2) / 2
    )


def test_a_weight_below_0_is_told() -> None:
    scores, target = scores_of_systems(0)
    scores[:, 2] *= -1
    with pytest.warns(
        CalibrationWarning, match=r"The weights of the systems are .*: one is negative"
    ):
        LogisticFusion(3).fit(scores, target)


def test_systems_that_separate_the_trials_together_are_refused() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    with Refused("no_optimum", "preds"):
        LogisticFusion(2).fit(scores, torch.tensor([0, 0, 1, 1]))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 2, 2)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with Refused("shape", "preds", shape="(N, 2)"):
        LogisticFusion(2).fit(torch.zeros(shape), torch.tensor([0, 1, 0, 1]))
    with Refused("shape", "preds", shape="(N, 2)"):
        LogisticFusion(2)(torch.zeros(shape))


def test_a_fusion_that_is_not_fitted_gives_the_mean_of_the_systems() -> None:
    scores, _ = scores_of_systems(0)
    torch.testing.assert_close(LogisticFusion(3)(scores), scores.mean(dim=1))


def test_settings_are_checked() -> None:
    with Refused("at_least", "num_systems", 0, minimum=1):
        LogisticFusion(0)
    with Refused("open_between", "p_target"):
        LogisticFusion(2, 1.0)
