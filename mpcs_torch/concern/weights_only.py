"""Let ``torch.load(weights_only=True)`` load concerns, such as those in the hyperparameters of a checkpoint.

`mpcs_torch.metrics` and `mpcs_torch.learning` import this module; `mpcs_torch.concern` does not, because it works
without torch.
"""

import torch

from mpcs_torch.concern.ranges import range_from_fields
from mpcs_torch.concern.spec import spec_from_fields

torch.serialization.add_safe_globals([spec_from_fields, range_from_fields])
