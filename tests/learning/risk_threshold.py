"""A threshold on one estimated risk, by the parts from which decision rules make theirs, for tests against oracles."""

from math import inf

import torch
from torch import Tensor

from mpcs_torch.learning.guaranteed_limits import LimitedRate
from mpcs_torch.learning.threshold_testing import ends_of_steps, last_step


def risk_threshold(
    risk: Tensor,
    loss: Tensor,
    *,
    max_loss: float,
    confidence: float | None = None,
    highest_loss: float = 1.0,
    clusters: Tensor | None = None,
) -> Tensor:
    """Choose the highest threshold on ``risk`` (N,) whose expected ``loss`` (N,) is at most ``max_loss``."""
    guarantee = (
        "in expectation" if confidence is None else f"with confidence {confidence:g}"
    )
    losses = loss.double() / highest_loss
    counted = torch.ones(len(risk), 1, dtype=torch.bool)
    name, limit = f"max_loss {max_loss:g} {guarantee}", max_loss / highest_loss
    rate = LimitedRate(
        name,
        limit,
        confidence,
        losses[:, None],
        counted,
        clusters=clusters,
        scale=highest_loss,
    ).over_all()
    rate.check_attainable()
    ends = ends_of_steps(risk, rounding=64 * torch.finfo(risk.dtype).eps)
    last = last_step(
        [rate], torch.bucketize(risk.double(), ends, right=True)[:, None], len(ends)
    )
    return (ends[last] if last >= 0 else torch.tensor(-inf)).to(risk.dtype)
