"""The equal error of Gaussian scores, against samples of them and the statistics of scipy."""

import math
import re
from typing import Any

import pytest
import torch
from scipy.stats import norm

from mpcs_torch.functional import gaussian_equal_error
from tests.conftest import load_oracle

ORACLE = load_oracle("detection_cases")
GAUSSIANS = {"gauss_equal_sd": (0, 1, 2, 1), "gauss_unequal_sd": (0, 1, 2, 0.5), "gauss_llr_mu2": (-2, 2, 2, 2)}
"""Mean and deviation of non-targets and targets, from the notes of the cases."""


def test_it_is_the_formula_of_the_oracle() -> None:
    formula = "t_EER=(mu0*sd1+mu1*sd0)/(sd0+sd1); EER=Phi(-(mu1-mu0)/(sd0+sd1))"
    assert ORACLE["meta"]["deck_homework_gaussian"] == formula
    for nontarget_mean, nontarget_deviation, target_mean, target_deviation in GAUSSIANS.values():
        names = {"mu0": nontarget_mean, "sd0": nontarget_deviation, "mu1": target_mean, "sd1": target_deviation}
        threshold, rate = (eval(part.split("=")[1], {"Phi": norm.cdf, **names}) for part in formula.split("; "))
        found = gaussian_equal_error(nontarget_mean, nontarget_deviation, target_mean, target_deviation)
        assert found.threshold.item() == pytest.approx(threshold, abs=1e-15)
        assert found.rate.item() == pytest.approx(rate)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_quantiles_of_both_distributions_have_nearly_its_rate(name: str) -> None:
    """The cases hold 400 quantiles of each class, so rates are rounded to steps of 1/400."""
    (case,) = (case for case in ORACLE["cases"] if case["name"] == name)
    rate = gaussian_equal_error(*GAUSSIANS[name]).rate.item()
    assert case["expected"]["eer_interpolated"]["value"] == pytest.approx(rate, abs=1 / 400)


@pytest.mark.parametrize("gaussians", [(0, 1, 2, 0.5), (-3, 0.2, 1, 4), (100, 7, 90, 2)], ids=str)
def test_both_kinds_of_error_have_the_rate_at_the_threshold(gaussians: tuple[float, float, float, float]) -> None:
    nontarget_mean, nontarget_deviation, target_mean, target_deviation = gaussians
    found = gaussian_equal_error(*gaussians)
    threshold, rate = found.threshold.item(), found.rate.item()
    assert norm.cdf(threshold, target_mean, target_deviation) == pytest.approx(rate)
    assert norm.sf(threshold, nontarget_mean, nontarget_deviation) == pytest.approx(rate)
    assert (rate > 0.5) == (target_mean < nontarget_mean)


def test_tensors_broadcast_and_keep_gradients() -> None:
    mean = torch.tensor([1.0, 2.0], requires_grad=True)
    rate, threshold = gaussian_equal_error(0, torch.tensor([[1.0], [2.0]]), mean, 1)
    assert rate.shape == threshold.shape == (2, 2)
    rate.sum().backward()
    assert mean.grad is not None
    assert (mean.grad < 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((math.nan, 1, 2, 1), "nontarget_mean must be finite, but got nan."),
        ((0, 1, -math.inf, 1), "target_mean must be finite, but got -inf."),
        ((0, 0, 2, 1), "nontarget_deviation must be finite and above 0, but got 0."),
        ((0, 1, 2, -1), "target_deviation must be finite and above 0, but got -1."),
        ((0, 1, 2, torch.tensor([1, math.inf])), "target_deviation must be finite and above 0, but got inf."),
    ],
)
def test_other_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        gaussian_equal_error(*arguments)
