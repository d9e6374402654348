"""The warning of a calibration that the data do not determine."""


class CalibrationWarning(UserWarning):
    """The data do not determine a calibration, or the scores carry no information about the labels."""
