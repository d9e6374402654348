"""Losses, a learning-rate scheduler, a checkpoint selector and a decision rule for any training loop."""

from mpcs_torch.learning.checkpoint_selector import CheckpointSelector
from mpcs_torch.learning.decision_rule import (
    AllReferredWarning,
    Assessment,
    DecisionFileError,
    DecisionRule,
    UnfittedRuleWarning,
)
from mpcs_torch.learning.loss_modules import (
    ConcernLoss,
    ConcernLossScale,
    GeneralizedMeanLoss,
    MarginRamp,
    SoftF1Loss,
    SoftmaxMarginLoss,
)
from mpcs_torch.learning.lr_scheduler import MPCSLR
from mpcs_torch.learning.recommended import Recipe, Recommendation, recommended, with_averages
from mpcs_torch.learning.rule_limit import Limit, RuleReport
from mpcs_torch.learning.sample_size import LimitPlan, PilotPlan, plan_like, plan_limit
from mpcs_torch.learning.selection import SelectionRule

__all__ = [
    "MPCSLR",
    "AllReferredWarning",
    "Assessment",
    "CheckpointSelector",
    "ConcernLoss",
    "ConcernLossScale",
    "DecisionFileError",
    "DecisionRule",
    "GeneralizedMeanLoss",
    "Limit",
    "LimitPlan",
    "MarginRamp",
    "PilotPlan",
    "Recipe",
    "Recommendation",
    "RuleReport",
    "SelectionRule",
    "SoftF1Loss",
    "SoftmaxMarginLoss",
    "UnfittedRuleWarning",
    "plan_like",
    "plan_limit",
    "recommended",
    "with_averages",
]
