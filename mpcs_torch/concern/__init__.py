"""Human values as data: which confusions matter, and how much."""

from mpcs_torch.concern.files import load_concern, save_concern
from mpcs_torch.concern.spec import ConcernError, ConcernSpec

__all__ = ["ConcernError", "ConcernSpec", "load_concern", "save_concern"]
