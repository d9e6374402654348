"""Files of predictions and of trials: read with every value checked, matched, and written.

Whatever reads, matches or writes a file raises `PredictionsError` if the file cannot be read or breaks a rule. It names
the file, and the row and the column if they are known.
"""

from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.hdf5 import Key, read_key
from mpcs_torch.evaluation.files.normalize import normalize_trials
from mpcs_torch.evaluation.files.predictions import Predictions, write_predictions
from mpcs_torch.evaluation.files.trial_hdf5 import write_key, write_ndx
from mpcs_torch.evaluation.files.trial_readers import columns_of, read_trial_table, read_trials
from mpcs_torch.evaluation.files.trial_writers import rewrite_scores, write_trials
from mpcs_torch.evaluation.files.trials import Trials, TrialTable

__all__ = [
    "Key",
    "Predictions",
    "PredictionsError",
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
    "write_predictions",
    "write_trials",
]
