"""Evaluate and train PyTorch classifiers whose errors are not equally bad.

The metrics are torchmetrics: create a metric, call `update` with each batch, then call `compute`. `ConcernSpec`
describes the cost of each kind of error. The functions under `mpcs_torch.functional` compute the same values without
state. Names are imported on first use, so that ``import mpcs_torch`` is fast and does not import PyTorch.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpcs_torch import calibration as calibration
    from mpcs_torch import concern as concern
    from mpcs_torch import evaluation as evaluation
    from mpcs_torch import functional as functional
    from mpcs_torch import learning as learning
    from mpcs_torch import metrics as metrics
    from mpcs_torch.calibration import TemperatureScaling
    from mpcs_torch.concern import (
        ConcernError,
        ConcernRange,
        ConcernSpec,
        load_concern,
        load_concern_range,
    )
    from mpcs_torch.evaluation import (
        Evaluation,
        WithInterval,
        WorstGroup,
        evaluate,
        evaluate_detectors,
    )
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.metrics import (
        DangerousErrors,
        EqualErrorRate,
        ExpectedConcern,
        MetaPatternConcernScore,
        MinDetectionCost,
        MulticlassQualityMetrics,
        ProbabilityAccuracy,
        SoftF1,
    )

__all__ = [
    "ConcernError",
    "ConcernRange",
    "ConcernSpec",
    "DangerousErrors",
    "EqualErrorRate",
    "Evaluation",
    "ExpectedConcern",
    "MetaPatternConcernScore",
    "MinDetectionCost",
    "MulticlassQualityMetrics",
    "OperatingPoint",
    "ProbabilityAccuracy",
    "SoftF1",
    "TemperatureScaling",
    "WithInterval",
    "WorstGroup",
    "evaluate",
    "evaluate_detectors",
    "functional",
    "load_concern",
    "load_concern_range",
]

_PACKAGES = ("calibration", "concern", "functional", "metrics", "evaluation", "learning")

if not TYPE_CHECKING:  # hidden from type checkers, which would else accept any name

    def __getattr__(name):
        """Import and return the public object or package ``name`` on its first use."""
        from importlib import import_module

        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name in __all__:
            packages = (import_module(f"{__name__}.{package}") for package in _PACKAGES)
            globals()[name] = next(
                getattr(package, name) for package in packages if name in package.__all__
            )
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
