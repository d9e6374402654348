"""The scores of one file."""

from collections.abc import Sequence
from typing import Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.scoring import Predictions
from mpcs_torch.scoring.models import Listener, score_models


def score(
    predictions: Predictions, concern: ConcernSpec | None = None, *, listeners: Sequence[Listener] = (), **options: Any
) -> ClassifierScores:
    return score_models({"model": predictions}, concern, listeners={"model": listeners}, **options).first
