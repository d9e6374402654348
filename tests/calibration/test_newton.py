"""Newton's method finds the minimum of a convex function, or that there is none."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
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


@given(seed=st.integers(0, 10**6))
def test_a_quadratic_function_has_its_minimum_and_constant_directions_are_left_alone(
    seed: int,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    factor, centre, start = (
        torch.randn(*size, generator=generator).double() for size in ((3, 2), (3,), (3,))
    )
    hessian = factor @ factor.T

    def expand(point: Tensor) -> Expansion:
        away = point - centre
        return Expansion(away @ hessian @ away / 2, hessian @ away, hessian)

    found = minimize(expand, start)
    assert found is not None
    torch.testing.assert_close(hessian @ found, hessian @ centre, rtol=1e-6, atol=1e-6)
    constant = torch.linalg.eigh(hessian).eigenvectors[:, 0]
    torch.testing.assert_close(found @ constant, start @ constant, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("start", [-6.0, -1.0, 0.0, 6.0])
def test_a_start_on_either_side_reaches_the_minimum(start: float) -> None:
    def expand(
        point: Tensor,
    ) -> Expansion:  # softplus(x) - x / 4, whose minimum is at -log 3
        probability = point.sigmoid()
        value = torch.logaddexp(point, torch.zeros_like(point)) - point / 4
        return Expansion(
            value.squeeze(),
            probability - 0.25,
            (probability * (1 - probability)).reshape(1, 1),
        )

    found = minimize(expand, torch.tensor([start], dtype=torch.float64))
    assert found is not None
    assert found.item() == pytest.approx(-torch.tensor(3.0).double().log().item())


def test_a_function_that_falls_for_ever_has_no_minimum() -> None:
    def expand(point: Tensor) -> Expansion:
        value = (-point).exp()
        return Expansion(value.squeeze(), -value, value.reshape(1, 1))

    assert minimize(expand, torch.zeros(1, dtype=torch.float64)) is None


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
