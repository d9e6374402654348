"""Newton's method: from starts that are far off, on devices without float64, and without convergence."""

import math

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from mpcs_torch.calibration import (
    CalibrationWarning,
    LogisticCalibration,
    TemperatureScaling,
    scaling,
)
from mpcs_torch.calibration.scaling import Expansion, in_float64, minimize
from tests.calibration.data import logits, trials
from tests.refused import Refused


@pytest.mark.parametrize("start", [-6.0, 6.0])
def test_a_start_on_either_side_reaches_the_minimum(start: float) -> None:
    """Minimize softplus(x) - x / 4, whose minimum is at -log 3."""

    def expand(point: Tensor) -> Expansion:
        probability = point.sigmoid()
        value = torch.nn.functional.softplus(point).sum() - point.sum() / 4
        return Expansion(
            value, probability - 0.25, (probability * (1 - probability)).diag()
        )

    found = minimize(expand, torch.tensor([start], dtype=torch.float64))
    assert found is not None
    assert found.item() == pytest.approx(-math.log(3))


@pytest.mark.parametrize(
    ("device", "fitted_on"), [("cpu", "cpu"), ("cuda", "cuda"), ("mps", "cpu")]
)
def test_values_are_fitted_on_their_device_if_it_has_float64(
    device: str, fitted_on: str
) -> None:
    with FakeTensorMode():
        values = in_float64(torch.empty(3, device=device))
    assert (values.device.type, values.dtype) == (fitted_on, torch.float64)


def test_a_fit_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "STEPS", 1)
    with pytest.warns(CalibrationWarning, match="Newton steps found no finite optimum"):
        assert TemperatureScaling().fit(*logits(0)).temperature == 1
    with Refused("no_optimum", "preds"):
        LogisticCalibration().fit(*trials(0))
