"""Losses, a learning-rate scheduler, a checkpoint selector and a decision rule for any training loop."""

from mpcs_torch.learning.checkpoint_selector import CheckpointSelector
from mpcs_torch.learning.decision_file import DecisionFileError
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.loss import ConcernLoss, ConcernLossScale, SoftmaxMarginLoss
from mpcs_torch.learning.lr_scheduler import MPCSLR
from mpcs_torch.learning.mean_loss import GeneralizedMeanLoss
from mpcs_torch.learning.recommended import Recipe, recommended
from mpcs_torch.learning.rule_limit import RuleReport
from mpcs_torch.learning.selection import SelectionRule
from mpcs_torch.learning.soft_loss import SoftF1Loss

__all__ = [
    "MPCSLR",
    "CheckpointSelector",
    "ConcernLoss",
    "ConcernLossScale",
    "DecisionFileError",
    "DecisionRule",
    "GeneralizedMeanLoss",
    "Recipe",
    "RuleReport",
    "SelectionRule",
    "SoftF1Loss",
    "SoftmaxMarginLoss",
    "recommended",
]
