"""The scores of one file."""

from typing import Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_files import RowRisks, score_models
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.files.predictions import Predictions


def score(
    predictions: Predictions,
    concern: ConcernSpec | None = None,
    *,
    risks: RowRisks | None = None,
    **options: Any,
) -> ClassifierScores:
    given = {} if risks is None else {"model": risks}
    return score_models({"model": predictions}, concern, risks=given, **options).first
