"""Logistic fusion against the calibration of one system, and against what is best for Gaussians."""

import math

import pytest
import torch

from mpcs_torch.calibration import CalibrationWarning, LogisticCalibration, LogisticFusion
from mpcs_torch.functional import clopper_pearson, equal_error_rate
from tests.calibration.data import scores_of_systems, trials
from tests.refused import Refused


def test_two_gaussian_systems_reach_the_analytic_equal_error_rate() -> None:
    generator = torch.Generator().manual_seed(0)
    separation = torch.tensor([2.0, 1.5])

    def draw(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.arange(size) % 2
        noise = torch.randn(size, 2, generator=generator)
        return noise + separation * target.unsqueeze(1), target

    fusion = LogisticFusion(2).fit(*draw(20_000))
    scores, target = draw(100_000)
    found = equal_error_rate(fusion(scores), target).item()
    best = 0.5 * math.erfc(separation.norm().item() / 2 / math.sqrt(2))
    low, high = clopper_pearson(round(found * 100_000), 100_000)
    assert low < best < high
    alone = [equal_error_rate(scores[:, place], target).item() for place in (0, 1)]
    assert found < min(alone) - 0.04


@pytest.mark.parametrize(("factor", "shares"), [(0, [1.0, 0.0]), (1, [0.5, 0.5])])
def test_a_system_without_information_has_no_weight_and_one_twice_shares_it(
    factor: float, shares: list[float]
) -> None:
    scores, target = trials(0)
    systems = torch.stack([scores, factor * scores + 0.1], dim=1)
    scale = LogisticCalibration().fit(scores, target).scale
    fusion = LogisticFusion(2).fit(systems, target)
    expected = scale * torch.tensor(shares).double()
    torch.testing.assert_close(fusion.weights, expected, rtol=1e-7, atol=0)


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


def test_settings_are_checked() -> None:
    with Refused("at_least", "num_systems", 0, minimum=1):
        LogisticFusion(0)
    with Refused("open_between", "p_target"):
        LogisticFusion(2, 1.0)
