"""Human values as data: the cost of each confusion of two classes."""

from mpcs_torch.concern.files import load_concern, save_concern
from mpcs_torch.concern.spec import ConcernError, ConcernSpec

__all__ = ["ConcernError", "ConcernSpec", "load_concern", "save_concern"]
