"""Temperature and vector scaling against scikit-learn, and fits that have no optimum."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from torch import Tensor, nn

from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling, VectorScaling
from mpcs_torch.functional import cross_entropy
from tests.calibration.data import CLASSES, logits
from tests.refused import Refused

SEEDS = st.integers(0, 10**6)
MAKERS: dict[str, Callable[[], TemperatureScaling | VectorScaling]] = {
    "temperature": TemperatureScaling,
    "vector": lambda: VectorScaling(CLASSES),
}
both = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class Identity(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose decision function is its input."""

    def fit(self, x: object, y: object) -> "Identity":
        self.classes_ = torch.arange(CLASSES).numpy()
        return self

    def decision_function(self, x: object) -> object:
        return x

    def predict(self, x: Any) -> object:
        return x.argmax(axis=1)


def mean_cross_entropy(scores: Tensor, target: Tensor) -> float:
    return cross_entropy(scores, target, num_classes=scores.shape[1]).item()


@pytest.mark.parametrize("seed", range(5))
def test_the_temperature_is_that_of_scikit_learn(seed: int) -> None:
    scores, target = logits(seed)
    oracle = CalibratedClassifierCV(
        FrozenEstimator(Identity().fit(None, None)), method="temperature"
    )
    oracle.fit(scores.numpy(), target.numpy())
    found = TemperatureScaling().fit(scores, target)(scores).softmax(dim=1)
    torch.testing.assert_close(
        found, torch.from_numpy(oracle.predict_proba(scores.numpy())), rtol=1e-6, atol=1e-9
    )


@both
@settings(max_examples=30)
@given(seed=SEEDS)
def test_no_small_change_of_a_fit_lowers_the_cross_entropy(
    make: Callable[[], TemperatureScaling | VectorScaling], seed: int
) -> None:
    scores, target = logits(seed, 200)
    calibration = make().fit(scores, target)
    best = mean_cross_entropy(calibration(scores), target)
    assert best <= mean_cross_entropy(scores, target)
    generator = torch.Generator().manual_seed(seed)
    for values in calibration.buffers():
        kept = values.clone()
        values *= 1 + 0.01 * torch.randn(
            values.shape, generator=generator, dtype=values.dtype
        )
        assert mean_cross_entropy(calibration(scores), target) >= best
        values.copy_(kept)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_vector_scaling_is_the_optimum_whose_biases_sum_to_zero(seed: int) -> None:
    """The gradient is 0 there; a constant added to all biases would change neither."""
    scores, target = logits(seed)
    scores += torch.arange(CLASSES)  # so that biases must make up for it
    fitted = VectorScaling(CLASSES).fit(scores, target)
    scale = fitted.scale.clone().requires_grad_()
    bias = fitted.bias.clone().requires_grad_()
    nn.functional.cross_entropy(scores * scale + bias, target).backward()
    for values in (scale, bias):
        assert values.grad is not None
        assert values.grad.abs().max() < 1e-10
    assert fitted.bias.sum().abs() < 1e-9
    assert fitted.bias.abs().max() > 0.1


@settings(max_examples=30)
@given(seed=SEEDS, factor=st.floats(1e-6, 1e6), shift=st.floats(-100, 100))
def test_the_temperature_follows_the_scale_of_the_logits(
    seed: int, factor: float, shift: float
) -> None:
    scores, target = logits(seed, 50)
    plain = TemperatureScaling().fit(scores, target).temperature
    scaled = (
        TemperatureScaling()
        .fit(factor * scores + shift * torch.rand(50, 1), target)
        .temperature
    )
    torch.testing.assert_close(scaled, factor * plain, rtol=1e-5, atol=0)


SCORES = torch.tensor([[3.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
QUASI = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    ("kind", "preds", "target", "reason"),
    [
        ("temperature", SCORES, [0, 0, 1], "is 1, because every sample is classified"),
        ("temperature", SCORES, [1, 0, 0], "is 1, because .* scores are reversed"),
        ("temperature", SCORES[:, :1].expand(3, 2), [1, 0, 0], "the same for all classes"),
        ("vector", SCORES, [0, 0, 1], "100 Newton steps found no finite optimum"),
        ("vector", QUASI, [0, 0, 1, 1], "100 Newton steps found no finite optimum"),
        ("vector", SCORES, [0, 0, 0], "no sample has the label 1: its optimal bias is"),
    ],
)
def test_without_an_optimum_logits_stay_as_they_are_with_a_warning(
    kind: str, preds: Tensor, target: list[int], reason: str
) -> None:
    scores, labels = logits(0)
    calibration = TemperatureScaling() if kind == "temperature" else VectorScaling(2)
    calibration.fit(scores[:, :2], labels % 2)
    with pytest.warns(CalibrationWarning, match=reason) as warned:
        calibration.fit(preds, torch.tensor(target))
    assert warned[0].filename == __file__
    assert torch.equal(calibration(preds), preds)


@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(2, 8))
def test_tiny_sets_have_an_optimum_or_a_warning(seed: int, size: int) -> None:
    scores, target = logits(seed, size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        temperature = TemperatureScaling().fit(scores, target)
        vector = VectorScaling(CLASSES).fit(scores, target)
    assert all(issubclass(warning.category, CalibrationWarning) for warning in caught)
    assert temperature.temperature.isfinite()
    assert temperature.temperature > 0
    assert vector.scale.isfinite().all()
    assert vector.bias.isfinite().all()
    best = mean_cross_entropy(temperature(scores), target)
    assert best <= mean_cross_entropy(scores, target) + 1e-9


@both
@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        (
            {"preds": torch.zeros(3)},
            Refused("shape", "preds", shape="(N, C) or (N, C, ...)"),
        ),
        ({"target": torch.tensor([0, 1, 4])}, Refused("class_indices", "target", last=3)),
        (
            {"preds": torch.tensor([[0.0, 0, 0, torch.nan]]).expand(3, 4)},
            Refused("finite_logits", "preds", column=3),
        ),
        (
            {"preds": torch.tensor([[0.0, 0, 0, -torch.inf]]).expand(3, 4)},
            Refused("finite_logits", "preds", [0.0, 0.0, 0.0, float("-inf")], sample=0),
        ),
        (
            {"preds": torch.zeros(0, 4), "target": torch.zeros(0, dtype=torch.int64)},
            Refused("not_empty", "preds"),
        ),
    ],
)
def test_errors_of_a_fit_name_the_wrong_argument(
    make: Callable[[], TemperatureScaling | VectorScaling],
    changed: dict[str, Tensor],
    refusal: Refused,
) -> None:
    arguments = {"preds": 2 * torch.eye(3, 4), "target": torch.tensor([0, 1, 2]), **changed}
    with refusal:
        make().fit(**arguments)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (
            lambda: TemperatureScaling()(torch.tensor([[1, 2]])),
            Refused("floating", "preds"),
        ),
        (
            lambda: VectorScaling(4)(torch.zeros(2, 3)),
            Refused("class_dimension", "preds", classes=4),
        ),
        (lambda: VectorScaling(1), Refused("at_least", "num_classes", 1, minimum=2)),
        (
            lambda: TemperatureScaling().fit(torch.zeros(1, 1), torch.tensor([0])),
            Refused("at_least", "num_classes", 1, minimum=2),
        ),
    ],
)
def test_errors_of_a_call_name_the_wrong_argument(
    call: Callable[[], object], refusal: Refused
) -> None:
    with refusal:
        call()
