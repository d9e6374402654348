"""Data sets by name, and their splits."""

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data.sources import DATASETS
from mpcs_torch.trainer.data.splits import DataSplits, Split

__all__ = ["DATASETS", "DataError", "DataSplits", "Split"]
