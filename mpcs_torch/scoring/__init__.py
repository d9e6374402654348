"""Files of predictions in, the values of all applicable metrics out."""

from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.detection import DetectionScores, score_detection
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.score import Scores, score
from mpcs_torch.scoring.trials import Trials, read_trials

__all__ = [
    "DetectionScores",
    "Predictions",
    "PredictionsError",
    "Scores",
    "Trials",
    "read_trials",
    "score",
    "score_detection",
]
