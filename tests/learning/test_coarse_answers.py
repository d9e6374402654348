"""Coarse answers between a class and a referral: the cheapest answer that the limits allow, and what it counts."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch import (
    ConcernError,
    ConcernSpec,
    DangerousErrors,
    ExpectedConcern,
    load_concern,
)
from mpcs_torch.concern import save_concern
from mpcs_torch.functional import expected_concern, least_concern_decision
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.learning.rule_limit import report_on
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


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_answer_of_minimum_expected_cost_is_given(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.randn(20, 4, generator=generator).mul(2).softmax(1)
    decided = least_concern_decision(probs, concern=LIGHTS, from_logits=False)
    for row, decision in zip(probs.double().tolist(), decided.tolist(), strict=True):
        expected = [
            sum(p * cost for p, cost in zip(row, column, strict=True))
            for column in LIGHTS.costs().T.tolist()
        ]
        assert expected[decision] == pytest.approx(min(expected), abs=1e-5), (
            "-1 is the last"
        )


def test_metrics_count_wrong_and_dangerous_answers() -> None:
    decisions = torch.tensor([RED, RED_OR_YELLOW, RED_OR_YELLOW, NOT_RED, -1])
    target = torch.tensor([1, 0, 2, 0, 3])
    counts = details(DangerousErrors(4, concern=LIGHTS), decisions, target)
    assert [count.item() for count in counts] == [2, 3, 4, 5], (
        "green for red or yellow, and not red for red"
    )
    cost = expected_concern(
        decisions, target, num_classes=4, concern=LIGHTS, normalize=False
    )
    assert cost.item() == pytest.approx((0.5 + 0.1 + 1 + 1 + 0.6) / 5)
    for metric, value in (
        (DangerousErrors(4, concern=LIGHTS), 2),
        (ExpectedConcern(4, concern=LIGHTS, normalize=False), cost),
    ):
        metric.update(decisions[:2], target[:2])
        metric.update(decisions[2:], target[2:])
        assert metric.compute().item() == pytest.approx(float(value))
    with Refused("decisions_or_scores", "preds", 6):
        DangerousErrors(4, concern=LIGHTS)(torch.tensor([6]), torch.tensor([0]))


def drawn(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw overconfident logits of eight classes, of which two neighbours are alike."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(8, (samples,), generator=generator)
    centres = torch.tensor(
        [[float(label // 2 * 5), float(label % 2)] for label in range(8)]
    )
    points = centres[target] + torch.randn(samples, 2, generator=generator)
    return -((points.unsqueeze(1) - centres) ** 2).sum(dim=2), target


@pytest.mark.slow
def test_coarse_answers_keep_the_limit_and_save_referrals() -> None:
    names = [str(label) for label in range(8)]
    pairs = {f"{label} or {label + 1}": 0.3 for label in range(0, 8, 2)}
    new, new_target = drawn(20_000, -1)
    above, referred = 0, dict.fromkeys((True, False), 0.0)
    for seed in range(25):
        for has_answers in referred:
            spec = ConcernSpec(names, refer=1.0, answers=pairs if has_answers else {})
            rule = DecisionRule(spec, Limit(0.02, "any"), seed=seed).fit(*drawn(1000, seed))
            report = report_on(rule(new), new_target, spec)
            referred[has_answers] += 1 - report.coverage
            above += has_answers and report.dangerous_rate > 0.02
    assert above <= 4, "more than 4 of 25 happen once in 140"
    assert referred[True] < 0.7 * referred[False]


def test_rows_are_answered_alike_alone_and_in_batches_and_after_a_file(
    tmp_path: Path,
) -> None:
    rule = DecisionRule(LIGHTS, [Limit(0.05), Limit(0.1, "any", of="decided")])
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(4, (2000,), generator=generator)
    # The scores have ties.
    logits = (
        (2 * torch.eye(4)[target] + torch.randn(2000, 4, generator=generator))
        .mul(2)
        .round()
    )
    rule.fit(logits, target)
    together = rule.assess(logits)
    assert set(together.decision.tolist()) >= {-1, RED, RED_OR_YELLOW}
    alone = torch.cat([rule(logits[place : place + 7]) for place in range(0, 2000, 7)])
    assert alone.equal(together.decision)
    rule.save(tmp_path / "rule.pt")
    assert DecisionRule.load(tmp_path / "rule.pt")(logits).equal(together.decision)
    assert ((together.decision == together.best) == (together.reason == 0)).all()


def test_a_file_holds_answers(tmp_path: Path) -> None:
    save_concern(LIGHTS, tmp_path / "lights.yaml")
    assert load_concern(tmp_path / "lights.yaml") == LIGHTS


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            {"red or blue": 0.1},
            "answers: must name classes, but 'red or blue' names 'blue'",
        ),
        (
            {"red": 0.1},
            "answers: must name different classes separated by ' or ', but got 'red'",
        ),
        (
            {"red or red": 0.1},
            "answers: must name different classes separated by ' or ', but got 'red or red'",
        ),
        ({"red or yellow or green or off": 0.1}, "answers: must leave out a class"),
        (
            {"red or off": 0.1, "off or red": 0.1},
            "answers: must differ, but 'off or red' has the same classes as another",
        ),
        (
            {"red or off": -1},
            "answers: must have a finite cost >= 0, but 'red or off' has -1",
        ),
        (
            ["red or off"],
            "answers: must be a mapping such as {'red or yellow': 0.3}, but got",
        ),
    ],
)
def test_wrong_answers_are_refused(answers: dict[str, float], message: str) -> None:
    with pytest.raises(ConcernError) as caught:
        ConcernSpec(NAMES, refer=1, answers=answers)
    assert message in str(caught.value)


def test_answers_need_the_cost_of_a_referral_and_names_without_or() -> None:
    with pytest.raises(
        ConcernError, match=r"answers: must come with the cost of a referral \(refer\)"
    ):
        ConcernSpec(NAMES, answers={"red or off": 0.1})
    with pytest.raises(
        ConcernError, match="answers: must not be given if a class name contains ' or '"
    ):
        ConcernSpec(["a or b", "a", "b"], refer=1, answers={"a or b": 0.1})
