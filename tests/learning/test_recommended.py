"""The recommended recipe: its losses, and the choice among the models."""

import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import Limit, recommended
from mpcs_torch.learning.recommended import PLAIN, REFERRAL_LIMIT, harm_of

LIGHTS = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5)
GENERATOR = torch.Generator().manual_seed(0)
LOGITS, TARGET = torch.randn(20, 3, generator=GENERATOR), torch.arange(20) % 3


def validation(size: int = 3000) -> tuple[dict[str, Tensor], Tensor]:
    """Draw logits: the model with a margin tells green from the others, and red from yellow less well."""
    target = torch.randint(0, 3, (size,), generator=GENERATOR)
    noise = torch.randn(size, 3, generator=GENERATOR)
    plain = 2.0 * torch.eye(3)[target] + noise
    helped = plain.clone()
    helped[:, 2] += torch.where(target == 2, 1.0, -1.0)
    return {PLAIN: plain, "margin 4": helped}, target


def test_the_plain_loss_is_cross_entropy_and_released_pairs_have_no_margin() -> None:
    losses = recommended(LIGHTS).losses
    assert next(iter(losses)) == PLAIN
    torch.testing.assert_close(losses[PLAIN](LOGITS, TARGET), cross_entropy(LOGITS, TARGET))
    margins = losses["margin 4"].margin * losses["margin 4"].concern
    assert margins.tolist() == [[0, 0, 4], [0, 0, 4], [4, 4, 0]]


def test_margins_are_in_proportion_to_weights_in_any_unit() -> None:
    weights = torch.tensor([[0, 10, 50], [10, 0, 10], [50, 0, 0]])
    harms = [harm_of(ConcernSpec(3, weights=(weights * unit).tolist())) for unit in (1, 0.1)]
    torch.testing.assert_close(harms[0], weights.double() / 50)
    torch.testing.assert_close(*harms)


def test_it_chooses_the_model_and_says_what_it_changes() -> None:
    logits, target = validation()
    choice = recommended(LIGHTS).choose(logits, target)
    assert choice.name == "margin 4"
    assert re.match(r"margin 4, with a decision factor of [\d.]+: -\d+\.\d dangerous errors in 10 000 ", str(choice))
    decisions = choice.rule(logits[choice.name])
    before = LIGHTS.dangerous_pairs()[target, logits[PLAIN].argmax(dim=1)].double().mean()
    assert LIGHTS.dangerous_pairs()[target, decisions].double().mean() < 0.7 * before
    change = re.search(r"estimate, ([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\] by counts", str(choice))
    assert change is not None
    value, low, high = map(float, change.groups())
    assert low < value < high < 0


def test_a_larger_allowance_saves_more() -> None:
    logits, target = validation()
    del logits["margin 4"]
    rates = []
    for allowed in (0.0, 0.02, 0.2):
        choice = recommended(LIGHTS, max_accuracy_loss=allowed).choose(logits, target)
        decided = choice.rule(logits[choice.name])
        rates.append(LIGHTS.dangerous_pairs()[target, decided].double().mean().item())
    assert rates[0] > rates[1] >= rates[2]


def test_it_says_so_if_the_plain_model_is_best() -> None:
    logits, target = validation()
    worse = {PLAIN: logits["margin 4"] * 3, "margin 4": logits[PLAIN].roll(1, dims=1)}
    choice = recommended(LIGHTS, max_accuracy_loss=0.0).choose(worse, target)
    assert choice.name == PLAIN
    if choice.factor == 1:
        assert str(choice).startswith("The plain model is the best choice")


def test_dangerous_errors_of_the_rule_are_those_of_the_concern() -> None:
    logits, target = validation()
    for concern in (LIGHTS, ConcernSpec(3, weights=[[0, 1, 9], [1, 0, 9], [9, 9, 0]], dangerous=9.0)):
        rule = recommended(concern).choose(logits, target).rule
        assert torch.equal(rule.concern.dangerous_pairs(), concern.dangerous_pairs())


def test_with_referral_the_limit_holds_for_each_model_that_might_be_chosen() -> None:
    logits, target = validation()
    recipe = recommended(LIGHTS, refer=Limit(0.01))
    choice = recipe.choose(logits, target)
    assert choice.factor is None
    assert choice.rule.limits == (Limit(0.01, confidence=0.975),)
    assert (choice.rule(logits[choice.name]) == -1).any()
    assert "decides" in str(choice)
    assert recommended(LIGHTS, refer=True).limits == (REFERRAL_LIMIT,)
    assert (
        recommended(LIGHTS, refer=[Limit(0.01), Limit(0.1, of="green", confidence=None)]).limits[1].confidence is None
    )


def test_errors_name_the_argument() -> None:
    logits, target = validation(30)
    with pytest.raises(ValueError, match=r"max_accuracy_loss must be from 0 to 1, but got 2\."):
        recommended(LIGHTS, max_accuracy_loss=2)
    with pytest.raises(ValueError, match="refer must be given with a concern that has a cost of referral"):
        recommended(replace(LIGHTS, refer=0.3))
    assert recommended(replace(LIGHTS, refer=0.3), refer=True).limits
    with pytest.raises(ValueError, match=r"logits must be named as losses, .*'margin 4'.* with 'plain', but got"):
        recommended(LIGHTS).choose({"margin 4": logits["margin 4"]}, target)
    with pytest.raises(ValueError, match="logits must be named as losses"):
        recommended(LIGHTS).choose({**logits, "margin 9": logits[PLAIN]}, target)
