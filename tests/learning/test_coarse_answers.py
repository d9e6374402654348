"""Coarse answers between a class and a referral: the cheapest answer that the limits allow, and what it counts."""

import re

import pytest
import torch

from mpcs_torch import ConcernError, ConcernSpec, DangerousErrors, ExpectedConcern
from tests.conftest import details
from tests.refused import Refused

NAMES = ["red", "yellow", "green", "off"]
LIGHTS = ConcernSpec(
    NAMES,
    releases=[["red", "yellow"], ["yellow", "red"]],
    refer=0.6,
    answers={"red or yellow": 0.1, "yellow or green or off": 0.25},
)
RED, YELLOW, GREEN, OFF, RED_OR_YELLOW, NOT_RED = range(6)


def test_an_answer_costs_its_price_with_the_true_class_and_the_worst_of_its_errors_without() -> (
    None
):
    costs = LIGHTS.costs()
    assert costs.shape == (4, 7)
    assert costs[:, RED_OR_YELLOW].tolist() == [0.1, 0.1, 1, 1]
    assert costs[:, NOT_RED].tolist() == [1, 0.25, 0.25, 0.25], (
        "red for yellow is tolerable, red for green is not"
    )
    assert LIGHTS.members().int().tolist() == [[1, 1, 0, 0], [0, 1, 1, 1]]


def test_metrics_count_wrong_and_dangerous_answers() -> None:
    decisions = torch.tensor([RED, RED_OR_YELLOW, RED_OR_YELLOW, NOT_RED, -1])
    target = torch.tensor([1, 0, 2, 0, 3])
    counts = details(DangerousErrors(4, concern=LIGHTS), decisions, target)
    assert [count.item() for count in counts] == [2, 3, 4, 5], (
        "green for red or yellow, and not red for red"
    )
    cost = ExpectedConcern(4, concern=LIGHTS, normalize=False)(decisions, target)
    assert cost.item() == pytest.approx((0.5 + 0.1 + 1 + 1 + 0.6) / 5)
    with Refused("decisions_or_scores", "preds", 6):
        DangerousErrors(4, concern=LIGHTS)(torch.tensor([6]), torch.tensor([0]))


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"red or blue": 0.1}, "must name classes, but 'red or blue' names 'blue'"),
        (
            {"red": 0.1},
            "must name different classes separated by ' or ', but got 'red'",
        ),
        (
            {"red or red": 0.1},
            "must name different classes separated by ' or ', but got 'red or red'",
        ),
        ({"red or yellow or green or off": 0.1}, "must leave out a class"),
        (
            {"red or off": 0.1, "off or red": 0.1},
            "must differ, but 'off or red' has the same classes as another",
        ),
        ({"red or off": -1}, "must have a finite cost >= 0, but 'red or off' has -1"),
        (["red or off"], "must be a mapping such as {'red or yellow': 0.3}, but got"),
    ],
)
def test_wrong_answers_are_refused(answers: dict[str, float], problem: str) -> None:
    with pytest.raises(ConcernError, match=re.escape(f"answers: {problem}")):
        ConcernSpec(NAMES, refer=1, answers=answers)


def test_answers_need_the_cost_of_a_referral_and_names_without_or() -> None:
    with pytest.raises(
        ConcernError, match=r"answers: must come with the cost of a referral \(refer\)"
    ):
        ConcernSpec(NAMES, answers={"red or off": 0.1})
    with pytest.raises(
        ConcernError, match="answers: must not be given if a class name contains ' or '"
    ):
        ConcernSpec(["a or b", "a", "b"], refer=1, answers={"a or b": 0.1})
