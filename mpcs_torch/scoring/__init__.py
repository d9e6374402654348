"""A file of predictions in, the values of all applicable metrics out, in one pass of bounded memory."""

from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.score import Scores, score

__all__ = ["Predictions", "PredictionsError", "Scores", "score"]
