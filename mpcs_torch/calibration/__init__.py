"""Turn scores into calibrated probabilities or log-likelihood ratios."""

from mpcs_torch.calibration.detection import (
    LogisticCalibration,
    LogisticFusion,
    PAVCalibration,
)
from mpcs_torch.calibration.priors import LabelShiftWarning, PriorEstimate, estimate_priors
from mpcs_torch.calibration.scaling import (
    CalibrationWarning,
    TemperatureScaling,
    VectorScaling,
)

__all__ = [
    "CalibrationWarning",
    "LabelShiftWarning",
    "LogisticCalibration",
    "LogisticFusion",
    "PAVCalibration",
    "PriorEstimate",
    "TemperatureScaling",
    "VectorScaling",
    "estimate_priors",
]
