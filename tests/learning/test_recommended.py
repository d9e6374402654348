"""The recommended recipe: its margins, and the rule that goes with it."""

import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import Limit, recommended
from mpcs_torch.study.plans import METHODS, RECIPE
from mpcs_torch.trainer.by_name import softmax_margin
from mpcs_torch.trainer.config.run import load_packaged_config

LIGHTS = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
LOGITS, TARGET = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 3


def test_it_is_the_loss_that_the_studies_recommend() -> None:
    config = load_packaged_config("studies/mnist", METHODS[RECIPE])
    assert config.loss.name == "softmax_margin"
    studied = softmax_margin(LIGHTS, **(config.loss.model_extra or {}))
    assert recommended(LIGHTS).loss(LOGITS, TARGET) == studied(LOGITS, TARGET)


def test_margins_are_in_proportion_to_weights_in_any_unit() -> None:
    weights = torch.tensor([[0, 10, 50], [10, 0, 10], [50, 0, 0]])
    losses = [recommended(ConcernSpec(3, weights=(weights * unit).tolist())).loss(LOGITS, TARGET) for unit in (1, 0.1)]
    assert losses[0] == losses[1]
    matrix = recommended(ConcernSpec(3, weights=weights.tolist())).loss.concern
    assert torch.allclose(matrix, weights / 50)


def test_the_rule_has_the_concern_and_the_limit() -> None:
    rule = recommended(LIGHTS, Limit(0.2, confidence=0.9)).rule
    assert (rule.concern, rule.limits) == (LIGHTS, (Limit(0.2, confidence=0.9),))
    assert not recommended(LIGHTS).rule.limits
