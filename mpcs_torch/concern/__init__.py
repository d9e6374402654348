"""Represent human values as data: the cost of each confusion of two classes."""

from mpcs_torch.concern.checks import ConcernError
from mpcs_torch.concern.files import load_concern, load_concern_range, save_concern
from mpcs_torch.concern.ranges import ConcernRange
from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.concern.trees import spec_from_heights, spec_from_tree, tree_from_pairs

__all__ = [
    "ConcernError",
    "ConcernRange",
    "ConcernSpec",
    "load_concern",
    "load_concern_range",
    "save_concern",
    "spec_from_heights",
    "spec_from_tree",
    "tree_from_pairs",
]
