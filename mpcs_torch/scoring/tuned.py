"""Hard F at thresholds that were learned on development data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from mpcs_torch.functional.soft.thresholds import best_f_thresholds
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.predictions import Predictions

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.by_name import MetricEntry


def tuned_entries(development: Predictions, class_names: Sequence[str]) -> "list[MetricEntry]":
    """Return hard F at the threshold of each class that is best on development data, held in memory as a whole.

    Raises:
        PredictionsError: If a value breaks a rule, the labels are not soft, or the classes are not those expected.
    """
    from mpcs_torch.metrics.by_name import MetricEntry
    from mpcs_torch.metrics.soft.hard import HardF1

    if development.class_names != list(class_names):
        raise PredictionsError(development.path, "must have the classes of the file that is scored, in their order")
    chunks = list(development.chunks())
    if not chunks:
        raise PredictionsError(development.path, "holds no row")
    if not chunks[0].is_soft:
        raise PredictionsError(development.path, "must have soft labels for thresholds by class")
    preds, target = torch.cat([chunk.scores for chunk in chunks]), torch.cat([chunk.target for chunk in chunks])
    best = best_f_thresholds(preds, target, num_classes=len(class_names))
    return [
        MetricEntry(
            f"hard_f1_{average}_tuned", HardF1, "soft_labels", {"average": average, "threshold": best.threshold}
        )
        for average in ("micro", "macro")
    ]
