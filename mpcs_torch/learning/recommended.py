"""The recommended recipe: the loss to train with and the rule to decide by."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.losses import SoftmaxMarginLoss
from mpcs_torch.learning.rule_limit import Limit

MARGIN = 2.0
"""In nats, for the errors that matter most."""
RELEASED_MARGIN = 0.1
"""The margin of released pairs, as a share of the full one."""
LABEL_SMOOTHING = 0.02


class Recipe(NamedTuple):
    """A loss and a decision rule that belong together."""

    loss: SoftmaxMarginLoss
    """Train with it instead of cross entropy."""
    rule: DecisionRule
    """Fit it on validation samples, then decide by it."""


def recommended(concern: ConcernSpec, limits: Limit | Sequence[Limit] = ()) -> Recipe:
    """Make the loss and the decision rule that make few dangerous errors in our studies of digits (``mpcs study``).

    It is a `SoftmaxMarginLoss` with a margin of 2 nats and label smoothing of 0.02, and a `DecisionRule` with a fitted
    temperature. Released pairs have a tenth of the margin; with weights, margins are in proportion to them. Any
    optimizer and schedule will do; ours was Adam with a cosine after a warmup.

    Args:
        concern: What errors cost, and which are dangerous.
        limits: The limits that the rule guarantees by referring samples. Default: it refers none, unless the concern
            has a cost of referral.

    Raises:
        ValueError: If a limit breaks the rules of `DecisionRule`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import recommended
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> recipe = recommended(lights)
        >>> model = torch.nn.Linear(4, 3)
        >>> inputs, target = torch.randn(30, 4), torch.arange(30) % 3
        >>> recipe.loss(model(inputs), target).backward()  # in the training loop
        >>> validation_logits = 2 * torch.eye(3)[target] + torch.randn(30, 3)
        >>> decisions = recipe.rule.fit(validation_logits, target)(validation_logits)
    """
    rule = DecisionRule(concern, limits)
    costs = concern.matrix().fill_diagonal_(0)
    shares = costs / costs.max()  # of the full margin
    if concern.weights is None:
        shares = torch.where(concern.released(), RELEASED_MARGIN, costs)
    return Recipe(SoftmaxMarginLoss(shares, margin=MARGIN, label_smoothing=LABEL_SMOOTHING), rule)
