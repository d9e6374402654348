"""Decisions with the minimum expected concern, against plain Python and scikit-learn's confusion matrix."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix
from torch import Tensor

from mpcs_torch.functional import expected_concern, least_concern_decision, shift_priors
from mpcs_torch.metrics import RowCost
from tests.refused import Refused


def draw(seed: int, samples: int = 30, classes: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(samples, classes, generator=generator, dtype=torch.float64)
    target = torch.randint(0, classes, (samples,), generator=generator)
    concern = 0.1 + torch.rand(classes, classes, generator=generator, dtype=torch.float64)
    return probs / probs.sum(1, keepdim=True), target, concern


@given(seed=st.integers(0, 10**6))
def test_decisions_have_the_minimum_expected_cost(seed: int) -> None:
    probs, _, concern = draw(seed)
    risks = probs.numpy() @ (concern.numpy() * (1 - np.eye(4)))
    decided = least_concern_decision(probs, concern=concern, from_logits=False)
    assert decided.tolist() == risks.argmin(axis=1).tolist()


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float32])
def test_costs_may_be_whole_numbers(dtype: torch.dtype) -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1]])
    costs = torch.tensor([[0, 0, 1], [1, 0, 0], [1, 1, 0]]).to(dtype)
    assert least_concern_decision(probs, concern=costs, from_logits=False).tolist() == [1]


def test_ties_go_to_the_lower_index_and_extra_dimensions_stay() -> None:
    logits = torch.zeros(2, 3, 5)
    assert torch.equal(
        least_concern_decision(logits, concern=torch.ones(3, 3)),
        torch.zeros(2, 5, dtype=torch.int64),
    )


@given(seed=st.integers(0, 10**6))
def test_expected_concern_equals_the_cost_of_the_confusion_matrix(seed: int) -> None:
    probs, target, concern = draw(seed)
    counts = confusion_matrix(target, probs.argmax(dim=1), labels=range(4))
    costs = concern.numpy() * (1 - np.eye(4))
    constant = (counts.sum(axis=1) @ costs).min()
    arguments = {"num_classes": 4, "concern": concern, "from_logits": False}
    assert expected_concern(probs, target, **arguments).item() == pytest.approx(
        (counts * costs).sum() / constant
    )
    plain = expected_concern(
        probs.argmax(dim=1), target, num_classes=4, concern=concern, normalize=False
    )
    assert plain.item() == pytest.approx((counts * costs).sum() / len(target))


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        (
            {"decision": "least_concern"},
            Refused("scores_to_decide", "preds", decision="least_concern"),
        ),
        ({"decision": "best"}, Refused("one_of", "decision", "best")),
    ],
)
def test_errors_name_the_wrong_argument(
    changed: dict[str, object], refusal: Refused
) -> None:
    labels = {"preds": torch.tensor([0, 1]), "target": torch.tensor([0, 1])}
    arguments: dict[str, Any] = {
        **labels,
        "num_classes": 3,
        "concern": torch.ones(3, 3),
        **changed,
    }
    with refusal:
        expected_concern(**arguments)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"preds": torch.tensor([[1, 2]])}, Refused("floating", "preds")),
        (
            {"preds": torch.rand(2)},
            Refused("shape", "preds", shape="(N, C) or (N, C, ...)"),
        ),
        ({"preds": torch.rand(2, 4)}, Refused("class_dimension", "preds", classes=3)),
        (
            {"preds": torch.tensor([[0.0, torch.nan, 0.0]])},
            Refused("logits", "preds", [0.0, float("nan"), 0.0], sample=0, column=1),
        ),
        ({"from_logits": False}, Refused("probabilities", "preds")),
        ({"concern": -torch.ones(3, 3)}, Refused("costs_off_diagonal", "concern", -1.0)),
        ({"concern": torch.zeros(3, 3)}, Refused("some_cost", "concern")),
        (
            {"concern": torch.ones(3, 2)},
            Refused("shape", "concern", shape="(3, 3) or (3, 4)"),
        ),
        (
            {"priors": torch.ones(3) / 3},
            Refused("given_with", "training_priors", other="priors"),
        ),
        (
            {"priors": torch.ones(3), "training_priors": torch.ones(3) / 3},
            Refused("distribution", "priors", [1.0, 1.0, 1.0]),
        ),
        (
            {"priors": torch.ones(3) / 3, "training_priors": torch.tensor([0.0, 0.5, 0.5])},
            Refused("positive_distribution", "training_priors", [0.0, 0.5, 0.5]),
        ),
        (
            {"priors": torch.ones(2) / 2, "training_priors": torch.ones(3) / 3},
            Refused("float_shape", "priors", shape=(3,)),
        ),
    ],
)
def test_decisions_refuse_bad_input(changed: dict[str, Any], refusal: Refused) -> None:
    arguments: dict[str, Any] = {
        "preds": torch.tensor([[3.0, 1.0, 2.0]]),
        "concern": torch.ones(3, 3),
        **changed,
    }
    with refusal:
        least_concern_decision(**arguments)


@given(seed=st.integers(0, 10**6), cost=st.floats(0, 1))
def test_a_sample_is_referred_where_every_class_costs_more(seed: int, cost: float) -> None:
    probs, _, concern = draw(seed)
    with_referral = torch.cat([concern, torch.full((4, 1), cost)], dim=1)
    plain = least_concern_decision(probs, concern=concern, from_logits=False)
    risk = (
        (probs @ concern.clone().fill_diagonal_(0)).gather(1, plain.unsqueeze(1)).squeeze(1)
    )
    decided = least_concern_decision(probs, concern=with_referral, from_logits=False)
    assert torch.equal(decided, torch.where(risk <= cost, plain, -1))


@given(seed=st.integers(0, 10**6))
def test_priors_of_the_deployment_weigh_the_classes(seed: int) -> None:
    """Weighing each sample by the ratio of its class's priors is another way to the same cost."""
    probs, target, concern = draw(seed, samples=60)
    shares = target.bincount(minlength=4) / 60
    if (shares == 0).any():
        return
    priors = torch.tensor([0.1, 0.2, 0.3, 0.4])
    settings: dict[str, Any] = {"num_classes": 4, "concern": concern, "from_logits": False}
    for normalize in (True, False):
        weighted = expected_concern(
            probs, target, (priors / shares)[target], **settings, normalize=normalize
        )
        ours = expected_concern(
            probs, target, **settings, priors=priors, normalize=normalize
        )
        assert ours.item() == pytest.approx(weighted.item(), rel=1e-6)


def test_shifted_priors_are_right_where_densities_are_known() -> None:
    """Two Gaussians of the same width: the log odds are a line in x, moved by the log odds of the priors."""
    x = torch.linspace(-3, 3, 12, dtype=torch.float64).reshape(4, 3)
    training, priors = torch.tensor([[0.3, 0.7], [0.9, 0.1]], dtype=torch.float64)
    trained = torch.sigmoid(2 * x + (training[1] / training[0]).log())
    expected = torch.sigmoid(2 * x + (priors[1] / priors[0]).log())
    shifted = shift_priors(
        torch.stack([1 - trained, trained], dim=1), training_priors=training, priors=priors
    )
    assert torch.allclose(shifted[:, 1], expected)


def test_classes_that_do_not_occur_in_the_deployment_are_never_decided_for() -> None:
    priors = {"training_priors": torch.tensor([0.5, 0.5]), "priors": torch.tensor([0.0, 1])}
    settings: dict[str, Any] = {"concern": torch.ones(2, 2), **priors}
    # The softmax of the first row underflows.
    logits = torch.tensor([[200.0, 0.0], [0.0, 0.0], [500.0, -torch.inf]])
    assert least_concern_decision(logits, **settings).tolist() == [1, 1, 1]
    target = torch.tensor([1, 1, 1])
    assert expected_concern(logits, target, num_classes=2, normalize=False, **settings) == 0
    certain = torch.tensor([[1.0, 0.0]])
    assert least_concern_decision(certain, **settings, from_logits=False).tolist() == [1]
    shifted = shift_priors(
        torch.tensor([[1.0, 0.0, 0.0]]),
        training_priors=torch.tensor([0.2, 0.3, 0.5]),
        priors=torch.tensor([0.0, 0.6, 0.4]),
    )
    assert shifted[0].tolist() == pytest.approx([0, 2 / 2.8, 0.8 / 2.8]), (
        "as for probabilities that are all alike"
    )


@given(seed=st.integers(0, 10**6), price=st.sampled_from([0.0, 0.01, 100.0]))
def test_the_price_of_a_referral_changes_no_value_of_decisions_without_them(
    seed: int, price: float
) -> None:
    probs, target, concern = draw(seed)
    with_referral = torch.cat([concern, torch.full((4, 1), price)], dim=1)
    for priors in (None, torch.tensor([0.1, 0.2, 0.3, 0.4])):
        settings: dict[str, Any] = {"num_classes": 4, "priors": priors}
        plain = expected_concern(probs.argmax(dim=1), target, concern=concern, **settings)
        priced = expected_concern(
            probs.argmax(dim=1), target, concern=with_referral, **settings
        )
        torch.testing.assert_close(plain, priced, rtol=0, atol=0, equal_nan=True)


def test_referrals_cost_what_the_last_column_says() -> None:
    concern = torch.tensor([[0.0, 9.0, 2.0], [5.0, 0.0, 3.0]])
    decisions, target = torch.tensor([-1, 1, 0, -1]), torch.tensor([0, 0, 0, 1])
    cost = expected_concern(
        decisions, target, num_classes=2, concern=concern, normalize=False
    )
    assert cost == (2 + 9 + 0 + 3) / 4
    with Refused("decisions_or_scores", "preds", -1, sample=0):
        expected_concern(decisions, target, num_classes=2, concern=concern[:, :2])


@pytest.mark.parametrize(
    ("further", "allowed"), [(0, "classes_only"), (1, "with_referral"), (2, "with_answers")]
)
def test_a_refusal_names_the_decisions_that_the_costs_allow(
    further: int, allowed: str
) -> None:
    costs = torch.ones(2, 2 + further)
    with Refused("decisions_or_scores", "preds", 9) as refused:
        expected_concern(torch.tensor([9]), torch.tensor([0]), num_classes=2, concern=costs)
    assert refused.value.fields["decisions"].code == allowed


@pytest.mark.parametrize(
    "costs",
    [
        torch.ones(4, 3, dtype=torch.bool),
        torch.ones(4, 3, dtype=torch.complex64),
        torch.ones(4),
        torch.ones(4, 2),
    ],
    ids=["bool", "complex", "one dimension", "two classes"],
)
def test_costs_of_rows_are_real_numbers_for_each_decision(costs: Tensor) -> None:
    with Refused("costs_by_class", "target"):
        RowCost(num_classes=3).update(torch.tensor([0, 1, 2, 0]), costs)
