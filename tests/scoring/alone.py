"""The scores of one file."""

from typing import Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.scoring import Predictions
from mpcs_torch.scoring.models import score_models
from mpcs_torch.scoring.row_risks import RowRisks


def score(
    predictions: Predictions, concern: ConcernSpec | None = None, *, risks: RowRisks | None = None, **options: Any
) -> ClassifierScores:
    return score_models(
        {"model": predictions}, concern, risks={} if risks is None else {"model": risks}, **options
    ).first
