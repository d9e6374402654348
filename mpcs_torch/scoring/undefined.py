"""Say why a metric has no finite value, for a reader who would otherwise see nan."""

from collections.abc import Mapping, Sequence
from math import isfinite, isinf

from torch import Tensor

from mpcs_torch.errors import shown

NAMED = 3
"""The most classes that a reason names."""


def undefined_values(
    values: Mapping[str, float], confusion: Tensor | None, class_names: Sequence[str]
) -> dict[str, str]:
    """Return the reason of each value that is NaN or infinite, by metric.

    Args:
        values: By metric.
        confusion: ``(C, C)`` counts, rows true classes; None if decisions were not counted.
        class_names: C names.
    """
    unfit = {name: value for name, value in values.items() if not isfinite(value)}
    if not unfit:
        return {}
    unpredicted, absent = "", ""
    if confusion is not None:
        unpredicted = _named(confusion.sum(dim=0), class_names, "never predicted")
        absent = _named(confusion.sum(dim=1), class_names, "without samples")
    return {name: _reason(name, value, unpredicted, absent) for name, value in unfit.items()}


def _reason(name: str, value: float, unpredicted: str, absent: str) -> str:
    match name:
        case "macro_precision" if unpredicted:
            return unpredicted
        case "macro_recall" | "balanced_error_rate" if absent:
            return absent
        case "macro_fscore" if unpredicted or absent:
            return "; ".join(filter(None, (unpredicted, absent)))
        case "micro_fscore" | "macro_fscore":
            return "precision and recall are 0"
        case "expected_concern" | "least_concern_cost":
            return "a decision that is always the same would cost nothing"
        case "cross_entropy" if isinf(value):
            return "the probability of a label is 0"
    return "it is infinite on these rows" if isinf(value) else "it is 0 / 0 on these rows"


def _named(counts: Tensor, class_names: Sequence[str], what: str) -> str:
    """Return a sentence about the classes with a count of 0; empty if there is none."""
    empty = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if not empty:
        return ""
    named = ", ".join(f"'{shown(name)}'" for name in empty[:NAMED])
    more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
    return f"class {named} is {what}" if len(empty) == 1 else f"classes {named}{more} are {what}"
