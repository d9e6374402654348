"""Losses, a learning-rate scheduler and a checkpoint selector for any training loop."""

from mpcs_torch.learning.checkpoint_selector import CheckpointSelector
from mpcs_torch.learning.loss import ConcernLoss, ConcernLossScale, SoftmaxMarginLoss
from mpcs_torch.learning.lr_scheduler import MPCSLR
from mpcs_torch.learning.selection import SelectionRule
from mpcs_torch.learning.soft_loss import SoftF1Loss

__all__ = [
    "MPCSLR",
    "CheckpointSelector",
    "ConcernLoss",
    "ConcernLossScale",
    "SelectionRule",
    "SoftF1Loss",
    "SoftmaxMarginLoss",
]
