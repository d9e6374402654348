"""Log-likelihood ratios of class posteriors against the plain formula."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import log_likelihood_ratios
from tests.refused import Refused

PRIORS = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)


@given(seed=st.integers(0, 10**6), shift=st.floats(-1e4, 1e4))
def test_ratios_are_posterior_odds_over_prior_odds(seed: int, shift: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(5, 3, generator=generator, dtype=torch.float64)
    probs = logits.softmax(dim=1)
    expected = probs.logit() - PRIORS.logit()
    for ratios in (
        log_likelihood_ratios(logits + shift, priors=PRIORS),
        log_likelihood_ratios(probs, priors=PRIORS, from_logits=False),
    ):
        torch.testing.assert_close(ratios, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64]
)
def test_large_ratios_keep_their_digits(dtype: torch.dtype) -> None:
    ratios = log_likelihood_ratios(
        torch.tensor([[1000.0, 0.0]], dtype=dtype), priors=torch.tensor([0.5, 0.5])
    )
    assert ratios.tolist() == [[1000, -1000]]
    assert ratios.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_certain_posteriors_have_infinite_ratios() -> None:
    ratios = log_likelihood_ratios(
        torch.tensor([[1.0, 0.0, 0.0]]), priors=PRIORS, from_logits=False
    )
    assert ratios.tolist() == [[torch.inf, -torch.inf, -torch.inf]]


def test_further_dimensions_stay() -> None:
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    found = log_likelihood_ratios(logits, priors=PRIORS)
    assert found.shape == logits.shape
    torch.testing.assert_close(
        found[:, :, 1, 2], log_likelihood_ratios(logits[:, :, 1, 2], priors=PRIORS)
    )


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"priors": [0.5, 0.5]}, Refused("float_shape", "priors", [0.5, 0.5], shape=(2,))),
        (
            {"priors": torch.tensor([0.0, 1.0])},
            Refused("positive_distribution", "priors", [0.0, 1.0]),
        ),
        ({"priors": PRIORS}, Refused("class_dimension", "preds", classes=3)),
        (
            {"preds": torch.zeros(2)},
            Refused("shape", "preds", shape="(N, C) or (N, C, ...)"),
        ),
        ({"preds": torch.tensor([[0.5, 0.6]])}, Refused("probabilities", "preds")),
        (
            {"preds": torch.tensor([[torch.nan, 0]]), "from_logits": True},
            Refused("logits", "preds", column=0),
        ),
    ],
)
def test_errors_name_the_wrong_argument(
    changed: dict[str, object], refusal: Refused
) -> None:
    priors = torch.tensor([0.5, 0.5])
    arguments: dict[str, Any] = {
        "preds": torch.tensor([[0.5, 0.5]]),
        "priors": priors,
        "from_logits": False,
        **changed,
    }
    with refusal:
        log_likelihood_ratios(**arguments)
