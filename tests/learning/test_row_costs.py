"""Costs of each row in losses and decision rules: values by NumPy, the concern as the default, and bad input."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from mpcs_torch import ConcernSpec
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import ConcernLoss, DecisionRule, Limit, SoftmaxMarginLoss
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
ROWS, CLASSES = 40, 3
LOGITS = 2 * torch.randn(ROWS, CLASSES, generator=GENERATOR).double()
TARGET = torch.randint(CLASSES, (ROWS,), generator=GENERATOR)
SHARES = torch.rand(ROWS, CLASSES, generator=GENERATOR).double().softmax(1)
AMOUNTS = 5 * torch.rand(ROWS, CLASSES, generator=GENERATOR).double()
IF_WRONG = costs_if_wrong(AMOUNTS)
BY_CLASS = 5 * torch.rand(ROWS, CLASSES, CLASSES, generator=GENERATOR).double() - 1
EYE = torch.eye(CLASSES).double()
NO_GAINS = BY_CLASS * (1 - EYE) + BY_CLASS.amin(2, keepdim=True) * EYE
"""Costs, some of them gains, of which that of the right decision is the lowest."""
CONCERN = ConcernSpec(["a", "b", "c"], weights=[[0, 1, 4], [2, 0, 1], [9, 3, 0]])
LOSSES = {"concern": ConcernLoss, "margin": SoftmaxMarginLoss}


def matrices(costs: Tensor) -> np.ndarray:
    """Return what each decision costs beyond the right one, (N, C, C)."""
    plain = costs.numpy()
    return plain - np.einsum("nii->ni", plain)[:, :, None]


def by_hand(
    name: str, strength: float, costs: Tensor, shares: Tensor, smoothed: Tensor
) -> np.ndarray:
    """Return the losses (N,) by the equations of the classes' docstrings, for true classes with ``shares`` (N, C)."""
    of_rows, logits, true = matrices(costs), LOGITS.numpy(), smoothed.numpy()
    if name == "margin":
        raised = logits + strength * np.einsum("ni,nij->nj", shares.numpy(), of_rows)
        return np.log(np.exp(raised).sum(1)) - (true * raised).sum(1)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    total = of_rows.sum(2, keepdims=True)
    penalties = np.divide(of_rows, total, out=np.zeros_like(of_rows), where=total > 0)
    wrong = np.einsum("ni,nij->nj", true, penalties) * -np.log1p(-probs)
    return (1 - strength) * -(true * np.log(probs)).sum(1) + strength * wrong.sum(1)


def loss_of(name: str, strength: float = 0.3, **settings: Any) -> Any:
    if name == "margin":
        return SoftmaxMarginLoss(CONCERN, margin=strength, reduction="none", **settings)
    return ConcernLoss(CONCERN, concern_share=strength, reduction="none", **settings)


def test_amounts_if_wrong_are_costs_by_true_class() -> None:
    expected = np.stack(
        [np.where(np.arange(CLASSES) == true, 0, AMOUNTS) for true in range(CLASSES)],
        axis=1,
    )
    assert np.array_equal(IF_WRONG, expected)
    assert torch.equal(costs_if_wrong(AMOUNTS[3]), IF_WRONG[3])
    pixels = AMOUNTS.view(2, 4, 5, CLASSES).movedim(-1, 1)
    of_pixels = IF_WRONG.view(2, 4, 5, CLASSES, CLASSES).movedim((-2, -1), (1, 2))
    assert torch.equal(costs_if_wrong(pixels), of_pixels)
    with pytest.raises(InvalidValueError) as refused:
        costs_if_wrong(-AMOUNTS)
    assert (refused.value.argument, refused.value.sample, refused.value.column) == (
        "amounts",
        0,
        0,
    )


OF_CONCERN = CONCERN.costs().double().expand(ROWS, CLASSES, CLASSES)
NONE = torch.zeros(ROWS, CLASSES, CLASSES)
COSTS = {"of the concern": OF_CONCERN, "if wrong": IF_WRONG, "by class": NO_GAINS, "": NONE}


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_follow_their_equations(
    name: str, strength: float, smoothing: float, costs: str
) -> None:
    loss = loss_of(name, strength, label_smoothing=smoothing)
    given: dict[str, Tensor] = {"costs": COSTS[costs]}
    for target, shares in ((TARGET, one_hot(TARGET).double()), (SHARES, SHARES)):
        smoothed = (1 - smoothing) * shares + smoothing / CLASSES
        expected = by_hand(name, strength, COSTS[costs], shares, smoothed)
        assert loss(LOGITS, target, **given).tolist() == pytest.approx(expected, rel=1e-6)
        if costs == "of the concern":
            assert loss(LOGITS, target).tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_pixels_and_single_samples_have_costs_of_their_shape(name: str) -> None:
    loss = loss_of(name)
    of_rows = loss(LOGITS, TARGET, costs=NO_GAINS)
    logits = LOGITS.view(2, 20, CLASSES).movedim(-1, 1)
    costs = NO_GAINS.view(2, 20, CLASSES, CLASSES).movedim(1, -1)
    of_pixels = loss(logits, TARGET.view(2, 20), costs=costs)
    assert of_pixels.flatten().tolist() == of_rows.tolist()
    alone = loss(LOGITS[3], TARGET[3], costs=NO_GAINS[3])
    assert alone.item() == pytest.approx(of_rows[3].item())


@pytest.mark.parametrize("call", [*LOSSES, "rule"])
def test_costs_of_deciding_are_refused_by_the_name_of_the_function(call: str) -> None:
    called = rule_of() if call == "rule" else partial(loss_of(call), target=TARGET)
    with Refused("costs_by_true_class", "costs", shape=(ROWS, CLASSES, CLASSES)):
        called(LOGITS, costs=AMOUNTS)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "costs", [IF_WRONG * torch.nan, BY_CLASS, -IF_WRONG], ids=["NaN", "rewards", "negative"]
)
def test_losses_refuse_costs_that_reward_errors(name: str, costs: Tensor) -> None:
    with Refused(
        "finite_at_least",
        "costs of wrong decisions, beyond that of the right one,",
        minimum=0,
    ):
        loss_of(name)(LOGITS, TARGET, costs=costs)


# Decisions


def rule_of(concern: ConcernSpec = CONCERN, **settings: Any) -> DecisionRule:
    return DecisionRule(concern, **{"calibration": None, **settings})


def expected(costs: Tensor) -> np.ndarray:
    """Return the expected costs (N, C) of decisions."""
    return np.einsum("ni,nij->nj", LOGITS.softmax(1).numpy(), costs.numpy())


@pytest.mark.parametrize(
    "costs",
    [IF_WRONG, BY_CLASS, 1e6 * IF_WRONG],
    ids=["if wrong", "by true class", "large"],
)
def test_a_rule_decides_for_the_lowest_expected_cost_of_each_row(costs: Tensor) -> None:
    assessed = rule_of().assess(LOGITS, costs)
    by_numpy = expected(costs)
    assert assessed.decision.tolist() == by_numpy.argmin(1).tolist()
    assert assessed.cost.tolist() == pytest.approx(by_numpy.min(1).tolist(), rel=1e-4)
    assert (assessed.decision != rule_of()(LOGITS)).any()


def test_a_rare_dear_error_is_not_lost_by_rounding() -> None:
    logits = torch.tensor([[0.0, -25.0]])
    costs = costs_if_wrong([[1e13, 1.0]])  # 1 - p is 1.4e-11, and p rounds to 1
    rule = DecisionRule(ConcernSpec(2), calibration=None)
    assert rule(logits, costs).item() == 1
    assert rule(logits, costs.clamp(max=1e9)).item() == 0


def test_the_costs_of_the_concern_change_no_decision() -> None:
    concern = ConcernSpec(
        ["a", "b", "c"], weights=CONCERN.weights, answers={"a or b": 0.2}, refer=0.6
    )
    costs = concern.costs()
    same = rule_of(concern).assess(LOGITS)
    assert len(set(same.decision.tolist())) == 5
    assessed = rule_of(concern).assess(LOGITS, costs[:, :3].expand(ROWS, 3, 3))
    assert assessed.decision.tolist() == same.decision.tolist()
    assert assessed.cost.tolist() == pytest.approx(same.cost.tolist(), rel=1e-5)
    assert assessed.risk.tolist() == same.risk.tolist()


def test_a_row_is_referred_if_that_costs_less_than_its_cheapest_class() -> None:
    concern = ConcernSpec(["a", "b", "c"], refer=1)
    assessed = rule_of(concern).assess(LOGITS, IF_WRONG)
    cheapest = expected(IF_WRONG).min(1)
    assert (assessed.decision == -1).tolist() == (cheapest > 1).tolist()
    assert 0 < (assessed.decision == -1).sum() < ROWS
    assert assessed.cost.tolist() == pytest.approx(cheapest.tolist(), rel=1e-4)


def test_gains_shift_no_decision() -> None:
    shifted = rule_of()(
        LOGITS, BY_CLASS - 100 * torch.rand(ROWS, CLASSES, 1, generator=GENERATOR)
    )
    assert shifted.tolist() == rule_of()(LOGITS, BY_CLASS).tolist()


def test_a_row_with_an_unknown_cost_is_referred() -> None:
    costs = IF_WRONG.clone()
    costs[4, 1, 2] = torch.nan
    assessed = rule_of().assess(LOGITS, costs)
    assert (assessed.decision == -1).nonzero().flatten().tolist() == [4]
    assert assessed.reason[4] == 2


def drawn(samples: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(2, (samples,), generator=generator)
    logits = 1.5 * torch.eye(2)[target] + torch.randn(samples, 2, generator=generator)
    return (
        logits,
        target,
        costs_if_wrong(torch.rand(samples, 2, generator=generator).exp() ** 3),
    )


CREDIT = ConcernSpec(["repays", "defaults"], dangerous=[["defaults", "repays"]])
COST_LIMIT, TOLD = Limit(0.1, "cost", confidence=None), drawn(400, 0)[1]


def test_limits_hold_for_decisions_by_costs_of_rows() -> None:
    """Of 200 fits, at most 5 % exceed the limit, up to two standard errors; the report has what decisions cost."""
    new = drawn(20_000, seed=10**6)
    above = list[bool]()
    for seed in range(200):
        logits, target, costs = drawn(400, seed)
        rule = DecisionRule(CREDIT, Limit(0.05)).fit(logits, target, costs=costs)
        decisions = rule(new[0], new[2])
        above.append(((decisions == 0) & (new[1] == 1)).double().mean().item() > 0.05)
    assert sum(above) <= 200 * 0.05 + 2 * (200 * 0.05 * 0.95) ** 0.5
    assert rule.report is not None
    logits, target, costs = drawn(400, seed=3)
    free = DecisionRule(CREDIT, calibration=None).fit(logits, target, costs=costs)
    decided = free(logits, costs)
    assert free.report is not None
    assert free.report.cost == pytest.approx(
        costs.numpy()[np.arange(400), target, decided].mean()
    )


def test_a_rule_with_limits_decides_as_it_was_fitted(tmp_path: Any) -> None:
    logits, target, costs = drawn(400, seed=0)
    rule = DecisionRule(CREDIT, Limit(0.05)).fit(logits, target, costs=costs)
    rule.save(tmp_path / "rule.pt")
    loaded = DecisionRule.load(tmp_path / "rule.pt")
    assert torch.equal(loaded(logits, costs), rule(logits, costs))
    plain = DecisionRule(CREDIT, Limit(0.05)).fit(logits, target)
    calls: list[Callable[[], Any]] = [lambda: loaded(logits), lambda: plain(logits, costs)]
    for call in calls:
        with Refused("costs_as_fitted", "costs"):
            call()
    rule.fit(logits, target)
    assert not rule.has_row_costs


@pytest.mark.parametrize(
    ("limits", "costs", "refusal"),
    [
        ([], torch.rand(400, 3, 2), Refused("costs_by_true_class", "costs")),
        ([], torch.full((400, 2, 2), torch.inf), Refused("finite", "costs", float("inf"))),
        ([COST_LIMIT], torch.rand(400, 2, 2), Refused("no_limit_of_costs", "limits")),
        (
            [],
            costs_if_wrong(1 - one_hot(TOLD)),
            Refused("known_before_class", "costs", label=0),
        ),
        (
            [],
            costs_if_wrong(
                torch.stack([TOLD * 7.0, torch.full((400,), 5.0)], dim=1)
            ),  # costs of deciding, 5 to look
            Refused("known_before_class", "costs", label=0),
        ),
    ],
)
def test_a_fit_refuses_costs(limits: list[Limit], costs: Tensor, refusal: Refused) -> None:
    logits, target, _ = drawn(400, 0)
    with refusal:
        DecisionRule(CREDIT, limits).fit(logits, target, costs=costs)
