"""Calibration of simulated detectors whose true log-likelihood ratios are known."""

import pytest
import torch

from mpcs_torch.calibration import LogisticCalibration, PAVCalibration
from mpcs_torch.functional import cllr, min_cllr

TRIALS = 100_000


def draw(seed: int, separation: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw Gaussian scores with their log-likelihood ratios and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(TRIALS) % 10 == 0
    scores = (
        torch.randn(TRIALS, generator=generator, dtype=torch.float64) + separation * target
    )
    return scores, separation * scores - separation**2 / 2, target


@pytest.mark.parametrize("separation", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("kind", [LogisticCalibration, PAVCalibration])
def test_calibration_brings_the_actual_cost_of_ratios_near_the_minimum(
    kind: type[LogisticCalibration | PAVCalibration], separation: float
) -> None:
    scores, ratios, target = draw(0, separation)
    calibration = kind().fit(3 * scores + 2, target)
    scores, ratios, target = draw(1, separation)
    found = calibration(3 * scores + 2)
    least = min_cllr(found, target).item()
    assert cllr(3 * scores + 2, target).item() > least + 0.1
    # The true ratios are the best there is; the minimum has a threshold for each score.
    assert cllr(ratios, target).item() < least + 0.005
    if kind is PAVCalibration:
        # PAV trusts its data fully: a target below all development targets would cost infinitely much.
        found = found.clamp(-12, 12)
    assert cllr(found, target).item() < least + 0.005
