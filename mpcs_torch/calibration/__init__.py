"""Turn scores into calibrated probabilities or log-likelihood ratios."""

from mpcs_torch.calibration.calibration_warning import CalibrationWarning
from mpcs_torch.calibration.fusion import LogisticFusion
from mpcs_torch.calibration.logistic import LogisticCalibration
from mpcs_torch.calibration.pav import PAVCalibration
from mpcs_torch.calibration.temperature import TemperatureScaling
from mpcs_torch.calibration.vector import VectorScaling

__all__ = [
    "CalibrationWarning",
    "LogisticCalibration",
    "LogisticFusion",
    "PAVCalibration",
    "TemperatureScaling",
    "VectorScaling",
]
