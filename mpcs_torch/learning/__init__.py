"""Losses, a learning-rate scheduler, a checkpoint selector and a decision rule for any training loop."""

from typing import TYPE_CHECKING

from mpcs_torch.concern import weights_only as _weights_only  # noqa: F401  # registers concerns with torch.load
from mpcs_torch.learning.checkpoint_selector import CheckpointSelector as CheckpointSelector
from mpcs_torch.learning.decision_rule import AllReferredWarning as AllReferredWarning
from mpcs_torch.learning.decision_rule import Assessment as Assessment
from mpcs_torch.learning.decision_rule import DecisionRule as DecisionRule
from mpcs_torch.learning.decision_rule import UnfittedRuleWarning as UnfittedRuleWarning
from mpcs_torch.learning.guaranteed_limits import (
    UnattainableLimitError as UnattainableLimitError,
)
from mpcs_torch.learning.loss_modules import ConcernLoss as ConcernLoss
from mpcs_torch.learning.loss_modules import GeneralizedMeanLoss as GeneralizedMeanLoss
from mpcs_torch.learning.loss_modules import MarginRamp as MarginRamp
from mpcs_torch.learning.loss_modules import SoftmaxMarginLoss as SoftmaxMarginLoss
from mpcs_torch.learning.lr_scheduler import MPCSLR as MPCSLR
from mpcs_torch.learning.recommended import Recipe as Recipe
from mpcs_torch.learning.recommended import Recommendation as Recommendation
from mpcs_torch.learning.recommended import average_logits as average_logits
from mpcs_torch.learning.recommended import recommended as recommended
from mpcs_torch.learning.rule_estimate import RuleEstimate as RuleEstimate
from mpcs_torch.learning.rule_estimate import estimate_decisions as estimate_decisions
from mpcs_torch.learning.rule_limit import Limit as Limit
from mpcs_torch.learning.rule_limit import RuleReport as RuleReport
from mpcs_torch.learning.sample_size import LimitPlan as LimitPlan
from mpcs_torch.learning.sample_size import plan_limit as plan_limit
from mpcs_torch.learning.selection import SelectionRule as SelectionRule

if not TYPE_CHECKING:  # type checkers take "import A as A" for public
    __all__ = sorted(
        name
        for name, value in globals().items()
        if getattr(value, "__module__", "").startswith(__name__)
    )
