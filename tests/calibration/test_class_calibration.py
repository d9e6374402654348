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
    scale, bias = (
        values.clone().requires_grad_() for values in (fitted.scale, fitted.bias)
    )
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


@both
def test_a_module_that_is_not_fitted_changes_nothing(make: Callable[[], nn.Module]) -> None:
    scores, _ = logits(0)
    assert torch.equal(make()(scores), scores)


@both
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_half_types_are_upcast_and_others_kept(
    make: Callable[[], TemperatureScaling | VectorScaling], dtype: torch.dtype
) -> None:
    scores, target = logits(2)
    given_scores = scores.to(dtype)
    calibration = make().fit(given_scores, target)
    found = calibration(given_scores)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact = make().fit(given_scores.double(), target)
    torch.testing.assert_close(
        calibration.state_dict(), exact.state_dict(), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        found.double(), exact(given_scores.double()), rtol=1e-5, atol=1e-5
    )


@both
def test_a_fit_asks_for_no_gradient(
    make: Callable[[], TemperatureScaling | VectorScaling],
) -> None:
    scores, target = logits(3)
    calibration = make().fit(scores.requires_grad_(), target)
    assert not any(values.requires_grad for values in calibration.state_dict().values())
    assert calibration(scores).requires_grad


RIGHT = torch.tensor([[3.0, 0.0], [2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])
WRONG = torch.tensor([[3.0, 0.0], [2.0, 1.0], [0.0, 1.0]]), torch.tensor([1, 0, 0])
ALIKE = torch.tensor([[3.0, 3.0], [1.0, 1.0], [0.0, 0.0]]), torch.tensor([1, 0, 0])


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (RIGHT, "every sample is classified correctly: the optimal temperature is 0"),
        (
            WRONG,
            "the scores are reversed or uninformative, and the optimal temperature is infinite",
        ),
        (ALIKE, "the logits are the same for all classes: they are uninformative"),
    ],
)
def test_a_temperature_without_an_optimum_is_1_with_a_warning(
    batch: tuple[Tensor, Tensor], reason: str
) -> None:
    calibration = TemperatureScaling().fit(*logits(0))
    with pytest.warns(
        CalibrationWarning, match=r"^The temperature is 1, because .*\.$"
    ) as told:
        assert calibration.fit(*batch).temperature == 1
    assert reason in str(told[0].message)
    assert told[0].filename == __file__


QUASI = (
    torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]),
    torch.tensor([0, 0, 1, 1]),
)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (RIGHT, "100 Newton steps found no finite optimum"),
        (QUASI, "100 Newton steps found no finite optimum"),
        (
            (RIGHT[0], torch.tensor([0, 0, 0])),
            "no sample has the label 1: its optimal bias is -inf",
        ),
    ],
)
def test_scales_without_an_optimum_are_1_with_a_warning(
    batch: tuple[Tensor, Tensor], reason: str
) -> None:
    scores, target = logits(0)
    calibration = VectorScaling(2).fit(scores[:, :2], target % 2)
    with pytest.warns(
        CalibrationWarning, match="The scales are 1 and the biases 0, because"
    ) as told:
        calibration.fit(*batch)
    assert reason in str(told[0].message)
    assert torch.equal(calibration.scale, torch.ones(2).double())
    assert torch.equal(calibration.bias, torch.zeros(2).double())


@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(2, 8))
def test_tiny_sets_have_an_optimum_or_a_warning(seed: int, size: int) -> None:
    scores, target = logits(seed, size)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        temperature = TemperatureScaling().fit(scores, target)
        vector = VectorScaling(CLASSES).fit(scores, target)
    assert all(issubclass(warning.category, CalibrationWarning) for warning in told)
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
        ({"preds": torch.zeros(3, 4, dtype=torch.int64)}, Refused("floating", "preds")),
        ({"target": torch.zeros(3)}, Refused("labels", "target")),
        ({"target": torch.tensor([0, 1])}, Refused("shape", "target", shape=(3,))),
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


def test_errors_of_a_call_name_the_wrong_argument() -> None:
    with Refused("floating", "preds"):
        TemperatureScaling()(torch.tensor([[1, 2]]))
    with Refused("class_dimension", "preds", classes=4):
        VectorScaling(4)(torch.zeros(2, 3))
    for one_class in (
        lambda: VectorScaling(1),
        lambda: TemperatureScaling().fit(torch.zeros(1, 1), torch.tensor([0])),
    ):
        with Refused("at_least", "num_classes", 1, minimum=2):
            one_class()
