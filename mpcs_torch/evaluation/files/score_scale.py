"""Decide whether the scores of a file are probabilities, percentages or logits, and make them probabilities.

Logits are never guessed: an option says so. Scores that sum to 100 are percentages. Probabilities in few decimals sum
to about 1.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.faults import ProbabilitiesWarning
from mpcs_torch.functional.inputs.probabilities import unlabelled_samples
from mpcs_torch.functional.inputs.sum_tolerance import printed_tolerances, sum_tolerance

MAX_DECIMALS = 6
"""The maximum number of decimals of rounded probabilities."""


def nominal_sum(sums: Any, num_classes: int) -> float | None:
    """Return 1 if all ``sums`` are 1 up to rounding, 100 if all are 100 (percentages), else None."""
    if not len(sums):
        return None
    for whole, tolerance in printed_tolerances(num_classes).items():
        if (abs(sums - whole) <= tolerance).all():
            return whole
    return None


def probabilities_of_logits(scores: Tensor, file_name: str) -> Tensor:
    """Return the softmax of logits (n, C), once they are checked; warn of logits that look like probabilities."""
    if len(scores) > 1 and scores.min() >= 0 and scores.max() <= 1:
        problem = (
            "the scores look like probabilities, but are read as logits: leave out --logits"
        )
        warnings.warn(f"{file_name}: {problem}", ProbabilitiesWarning, stacklevel=2)
    with warnings.catch_warnings():  # the warning above names the file and the option
        warnings.simplefilter("ignore", ProbabilitiesWarning)
        unlabelled_samples(scores, scores.shape[1], from_logits=True)
    return scores.double().softmax(dim=1)


def probabilities_of_shares(scores: Tensor, whole: float) -> tuple[Tensor, str]:
    """Return scores (n, C), which sum to about ``whole`` (1 or 100), as probabilities, and a note on rounded ones."""
    probs, note = undo_rounding(scores, whole)
    return (probs if whole == 1 else probs / whole), note


def undo_rounding(scores: Tensor, whole: float) -> tuple[Tensor, str]:
    """Divide ``scores`` (n, C) by their row sums if these differ from ``whole`` by rounding; also return a note on it.

    ``whole`` is 1, or 100 for percentages. Rounding changes each score by at most half a unit of its last decimal. If
    it does not explain all sums, the scores are returned as they are, with an empty note.
    """
    total = scores.double().sum(dim=1)
    off = ~((total / whole - 1).abs() <= sum_tolerance(scores.dtype))
    decimals = rounded_decimals(scores, 2 if whole == 1 else 0) if off.any() else None
    if decimals is None:
        return scores, ""
    half = 0.5 * 10.0**-decimals
    sums = total[off]
    rows = scores[off]
    room = 1e-9 * whole  # for floating-point errors in the sums
    highest = whole + half * (rows > 0).sum(dim=1) + room
    # Rounding never explains a sum below half.
    lowest = max(0.5 * whole, whole - half * scores.shape[1] - room)
    if not ((sums >= lowest) & (sums <= highest)).all():
        return scores, ""
    rounded = f"The probabilities are rounded to {decimals} decimals"
    between = f"{sums.min():.4g} to {sums.max():.4g}"
    note = f"{rounded}: {len(sums)} rows sum to {between}, and were divided by their sum."
    return scores.double() * whole / total.unsqueeze(1), note


def rounded_decimals(scores: Tensor, fewest: int) -> int | None:
    """Return the number of decimals, from ``fewest``, to which ``scores`` are rounded; None if there are too many."""
    wide = scores.double()
    for decimals in range(fewest, MAX_DECIMALS + 1):
        unit = 10.0**decimals
        # A whole number divided by a power of ten is the same float as the decimal number that was read.
        if torch.equal(((wide * unit).round() / unit).to(scores.dtype), scores):
            return decimals
    return None
