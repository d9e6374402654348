"""Evaluate classifiers and detectors, from tensors or in batches: values, intervals, groups and comparisons.

Each name is imported when it is first used, so that tables of comparisons can be read without torchmetrics.
"""

from typing import TYPE_CHECKING

from mpcs_torch.public_names import lazy_names

if TYPE_CHECKING:
    from mpcs_torch.evaluation.confusion import evaluate_confusion as evaluate_confusion
    from mpcs_torch.evaluation.detectors import evaluate_detectors as evaluate_detectors
    from mpcs_torch.evaluation.evaluation import Evaluation as Evaluation
    from mpcs_torch.evaluation.in_memory import decision_curves as decision_curves
    from mpcs_torch.evaluation.in_memory import evaluate as evaluate
    from mpcs_torch.evaluation.requirements import Requirement as Requirement
    from mpcs_torch.evaluation.requirements import RequirementError as RequirementError
    from mpcs_torch.evaluation.result import EvaluationWarning as EvaluationWarning
    from mpcs_torch.evaluation.result import Result as Result
    from mpcs_torch.evaluation.with_interval import WithInterval as WithInterval
    from mpcs_torch.evaluation.worst_group import WorstGroup as WorstGroup

_NAMES = {
    "confusion": ("evaluate_confusion",),
    "detectors": ("evaluate_detectors",),
    "evaluation": ("Evaluation",),
    "in_memory": ("decision_curves", "evaluate"),
    "requirements": ("Requirement", "RequirementError"),
    "result": ("EvaluationWarning", "Result"),
    "with_interval": ("WithInterval",),
    "worst_group": ("WorstGroup",),
}
"""The public names by module."""

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
