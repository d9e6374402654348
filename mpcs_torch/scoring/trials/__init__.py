"""Trials of detectors from and to files of any format."""

from mpcs_torch.evaluation.bins import Groups
from mpcs_torch.scoring.trials.hdf5_write import write_key, write_ndx
from mpcs_torch.scoring.trials.held import Trials, TrialTable
from mpcs_torch.scoring.trials.key import Key, read_key
from mpcs_torch.scoring.trials.normalize import normalize_trials
from mpcs_torch.scoring.trials.read import columns_of, read_trial_table, read_trials
from mpcs_torch.scoring.trials.rewrite import rewrite_scores
from mpcs_torch.scoring.trials.write import write_trials

__all__ = [
    "Groups",
    "Key",
    "TrialTable",
    "Trials",
    "columns_of",
    "normalize_trials",
    "read_key",
    "read_trial_table",
    "read_trials",
    "rewrite_scores",
    "write_key",
    "write_ndx",
    "write_trials",
]
