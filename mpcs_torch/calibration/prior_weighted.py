"""Prior-weighted logistic regression: the affine function of scores that separates targets from non-targets best."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.newton import STEPS, Expansion, minimize


class Affine(NamedTuple):
    """An affine function of the scores of S systems: float64."""

    weights: Tensor
    """(S,)."""
    bias: Tensor
    """Scalar."""


def fit_affine(scores: Tensor, is_target: Tensor, p_target: float) -> Affine:
    """Fit the function whose values are log-likelihood ratios.

    Args:
        scores: (N, S), float64 and finite. A system whose scores are all alike gets the weight 0, and systems whose
            scores say the same share their weight.
        is_target: (N,), bool; both kinds occur.
        p_target: The prior that weighs the errors, in (0, 1).

    Raises:
        ValueError: If there is no finite optimum.
    """
    centre, spread = scores.mean(dim=0), scores.std(dim=0, correction=0)
    spread = torch.where(scores.amin(dim=0) < scores.amax(dim=0), spread, torch.inf)  # rounding must not spread them
    unit = (scores - centre) / spread
    found = minimize(lambda point: _expand(unit, is_target, p_target, point), scores.new_zeros(scores.shape[1] + 1))
    if found is None:
        problem = f"{STEPS} Newton steps found no finite optimum: the scores may separate targets from non-targets"
        raise ValueError(f"preds must overlap to be calibrated, but {problem}.")
    weights = found[:-1] / spread
    return Affine(weights, found[-1] - weights @ centre)


def _expand(scores: Tensor, is_target: Tensor, p_target: float, point: Tensor) -> Expansion:
    """Expand the weighted cross entropy in the weights and the bias (S + 1,), in which it is convex."""
    target = is_target.to(scores)
    weight = torch.where(is_target, p_target / target.sum(), (1 - p_target) / (1 - target).sum())
    inputs = torch.cat([scores.T, torch.ones_like(scores[:, :1]).T])
    log_odds = point @ inputs + log(p_target / (1 - p_target))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(log_odds, target, weight, reduction="sum")
    probs = log_odds.sigmoid()
    curvature = weight * probs * (1 - probs)
    return Expansion(loss, inputs @ (weight * (probs - target)), (inputs * curvature) @ inputs.T)
