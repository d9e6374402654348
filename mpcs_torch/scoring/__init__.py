"""Files of predictions and trials in, the values of metrics or calibrated scores out."""

from mpcs_torch.scoring.calibrate import (
    FittedCalibration,
    calibrate_predictions,
    fit_to_predictions,
    fit_to_trials,
)
from mpcs_torch.scoring.calibration_file import (
    CalibrationFileError,
    SavedCalibration,
    load_calibration,
    save_calibration,
)
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.trials import (
    Key,
    Trials,
    TrialTable,
    columns_of,
    normalize_trials,
    read_key,
    read_trial_table,
    read_trials,
    rewrite_scores,
    write_key,
    write_ndx,
    write_trials,
)
from mpcs_torch.scoring.write import write_predictions

__all__ = [
    "CalibrationFileError",
    "FittedCalibration",
    "Key",
    "Predictions",
    "PredictionsError",
    "SavedCalibration",
    "TrialTable",
    "Trials",
    "calibrate_predictions",
    "columns_of",
    "fit_to_predictions",
    "fit_to_trials",
    "load_calibration",
    "normalize_trials",
    "read_key",
    "read_trial_table",
    "read_trials",
    "rewrite_scores",
    "save_calibration",
    "write_key",
    "write_ndx",
    "write_predictions",
    "write_trials",
]
