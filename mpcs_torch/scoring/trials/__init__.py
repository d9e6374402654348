"""Trials of detectors from files of any format."""

from mpcs_torch.scoring.trials.held import Groups, Trials, TrialTable
from mpcs_torch.scoring.trials.read import read_trial_table, read_trials

__all__ = ["Groups", "TrialTable", "Trials", "read_trial_table", "read_trials"]
