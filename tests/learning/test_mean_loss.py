"""The loss of generalized means: its limits, its gradient, and finite values for extreme logits."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from mpcs_torch.learning import GeneralizedMeanLoss
from mpcs_torch.trainer.config.load import load_packaged_config
from tests.learning.losses_in_float64 import generalized_mean_loss
from tests.oracles import naive
from tests.refused import Refused

POWERS = (-2.0, -2 / 3, -1e-3, 0.0, 1e-12, 0.5, 1.0)
LOGITS = 3 * torch.randn(30, 4, generator=torch.Generator().manual_seed(0)).double()
TARGET = torch.arange(30) % 4


@given(seed=st.integers(0, 10**6), power=st.sampled_from(POWERS))
def test_it_is_minus_the_logarithm_of_the_mean(seed: int, power: float) -> None:
    logits = 3 * torch.randn(9, 4, generator=torch.Generator().manual_seed(seed)).double()
    probs = logits.softmax(1)[torch.arange(9), TARGET[:9]].tolist()
    expected = -math.log(
        naive.generalized_mean(probs, 0.0 if abs(power) < 1e-9 else power, 0.0)
    )
    assert generalized_mean_loss(logits, TARGET[:9], power=power).item() == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize("power", POWERS)
def test_the_gradient_is_that_of_cross_entropy_with_weights_of_mean_one(
    power: float,
) -> None:
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z: generalized_mean_loss(z, TARGET, power=power), (logits,)
    )
    (ours,) = torch.autograd.grad(
        generalized_mean_loss(logits, TARGET, power=power), logits
    )
    losses = cross_entropy(logits, TARGET, reduction="none")
    weights = (-power * losses).softmax(0).detach()
    (theirs,) = torch.autograd.grad((weights * losses).sum(), logits)
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_extreme_logits_give_finite_losses_and_gradients(
    power: float, dtype: torch.dtype
) -> None:
    logits = torch.tensor(
        [[1e4, -1e4], [-1e4, 1e4], [0.0, 0.0]], dtype=dtype, requires_grad=True
    )
    loss = GeneralizedMeanLoss(power)(logits, torch.tensor([1, 1, 0]))
    assert loss.dtype == torch.float32
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_ignored_samples_and_further_dimensions() -> None:
    spoilt = torch.cat([TARGET[:20], torch.full((10,), -100)])
    alone = generalized_mean_loss(LOGITS[:20], TARGET[:20], power=-1.0)
    assert generalized_mean_loss(LOGITS, spoilt, power=-1.0).item() == pytest.approx(
        alone.item()
    )
    cut = LOGITS.reshape(6, 5, 4).movedim(2, 1)
    assert generalized_mean_loss(
        cut, TARGET.reshape(6, 5), power=-1.0
    ).item() == pytest.approx(generalized_mean_loss(LOGITS, TARGET, power=-1.0).item())
    assert generalized_mean_loss(
        LOGITS, torch.full((30,), 7), power=1.0, ignore_index=7
    ).isnan()


def test_run_configs_take_it_by_name() -> None:
    config = load_packaged_config(
        "experiments/digits", ["loss={name: generalized_mean, power: -0.5}"]
    )
    assert config.loss.model_extra == {"power": -0.5}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"power": math.inf}, Refused("finite", "power", float("inf"))),
        (
            {"target": TARGET.float()},
            Refused("shape_of", "target", other="logits", shape=(30, 4)),
        ),
    ],
)
def test_errors_name_the_wrong_argument(
    arguments: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        GeneralizedMeanLoss(arguments.get("power", 0.0))(
            LOGITS, arguments.get("target", TARGET)
        )
