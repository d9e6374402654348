"""Evaluate and train PyTorch classifiers whose errors are not equally bad.

The metrics are torchmetrics: create a metric, call `update` with each batch, then call `compute`. `ConcernSpec`
describes the cost of each kind of error. The functions under `mpcs_torch.functional` compute the same values without
state. Names are imported on first use, so that ``import mpcs_torch`` is fast and does not import PyTorch.
"""

from typing import TYPE_CHECKING

from mpcs_torch.public_names import lazy_names

if TYPE_CHECKING:
    from mpcs_torch import calibration as calibration
    from mpcs_torch import concern as concern
    from mpcs_torch import evaluation as evaluation
    from mpcs_torch import functional as functional
    from mpcs_torch import learning as learning
    from mpcs_torch import metrics as metrics
    from mpcs_torch.calibration import TemperatureScaling as TemperatureScaling
    from mpcs_torch.concern import ConcernError as ConcernError
    from mpcs_torch.concern import ConcernRange as ConcernRange
    from mpcs_torch.concern import ConcernSpec as ConcernSpec
    from mpcs_torch.concern import load_concern as load_concern
    from mpcs_torch.concern import load_concern_range as load_concern_range
    from mpcs_torch.evaluation import Evaluation as Evaluation
    from mpcs_torch.evaluation import WithInterval as WithInterval
    from mpcs_torch.evaluation import WorstGroup as WorstGroup
    from mpcs_torch.evaluation import evaluate as evaluate
    from mpcs_torch.evaluation import evaluate_detectors as evaluate_detectors
    from mpcs_torch.functional import OperatingPoint as OperatingPoint
    from mpcs_torch.metrics import DangerousErrors as DangerousErrors
    from mpcs_torch.metrics import EqualErrorRate as EqualErrorRate
    from mpcs_torch.metrics import ExpectedConcern as ExpectedConcern
    from mpcs_torch.metrics import MetaPatternConcernScore as MetaPatternConcernScore
    from mpcs_torch.metrics import MinDetectionCost as MinDetectionCost
    from mpcs_torch.metrics import MulticlassQualityMetrics as MulticlassQualityMetrics
    from mpcs_torch.metrics import ProbabilityAccuracy as ProbabilityAccuracy
    from mpcs_torch.metrics import SoftF1 as SoftF1

_NAMES = {
    "calibration": ("TemperatureScaling",),
    "concern": (
        "ConcernError",
        "ConcernRange",
        "ConcernSpec",
        "load_concern",
        "load_concern_range",
    ),
    "evaluation": (
        "Evaluation",
        "WithInterval",
        "WorstGroup",
        "evaluate",
        "evaluate_detectors",
    ),
    "functional": ("OperatingPoint",),
    "learning": (),
    "metrics": (
        "DangerousErrors",
        "EqualErrorRate",
        "ExpectedConcern",
        "MetaPatternConcernScore",
        "MinDetectionCost",
        "MulticlassQualityMetrics",
        "ProbabilityAccuracy",
        "SoftF1",
    ),
}
"""The public names by package."""

if not TYPE_CHECKING:  # a type checker takes "import A as A" as public, and would accept any name with __getattr__
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
