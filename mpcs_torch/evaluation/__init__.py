"""Evaluate classifiers and detectors, from tensors or in batches: values, intervals, groups and comparisons.

Each name is imported when it is first used, so that tables of comparisons can be read without torchmetrics.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpcs_torch.evaluation.confusion import evaluate_confusion
    from mpcs_torch.evaluation.detectors import evaluate_detectors
    from mpcs_torch.evaluation.evaluation import Evaluation
    from mpcs_torch.evaluation.in_memory import decision_curves, evaluate
    from mpcs_torch.evaluation.requirements import Requirement, RequirementError
    from mpcs_torch.evaluation.result import EvaluationWarning, Result
    from mpcs_torch.evaluation.with_interval import WithInterval
    from mpcs_torch.evaluation.worst_group import WorstGroup

__all__ = [
    "Evaluation",
    "EvaluationWarning",
    "Requirement",
    "RequirementError",
    "Result",
    "WithInterval",
    "WorstGroup",
    "decision_curves",
    "evaluate",
    "evaluate_confusion",
    "evaluate_detectors",
]

_FILES = {"Result": "result", "WithInterval": "with_interval", "WorstGroup": "worst_group"}
_FILES |= dict.fromkeys(("Requirement", "RequirementError"), "requirements")
_FILES |= {
    "EvaluationWarning": "result",
    "evaluate_confusion": "confusion",
    "evaluate": "in_memory",
}
_FILES |= {"evaluate_detectors": "detectors", "decision_curves": "in_memory"}

if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a public name when it is first used."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(
            import_module(f"{__name__}.{_FILES.get(name, 'evaluation')}"), name
        )
        return globals()[name]
