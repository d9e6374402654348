"""Turn scores into calibrated probabilities or log-likelihood ratios."""

from mpcs_torch.calibration.logistic import LogisticCalibration, LogisticFusion
from mpcs_torch.calibration.pav import PAVCalibration
from mpcs_torch.calibration.scaling import TemperatureScaling, VectorScaling
from mpcs_torch.calibration.scores import CalibrationWarning

__all__ = [
    "CalibrationWarning",
    "LogisticCalibration",
    "LogisticFusion",
    "PAVCalibration",
    "TemperatureScaling",
    "VectorScaling",
]
