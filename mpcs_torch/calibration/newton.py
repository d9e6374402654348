"""Minimise a convex function of a few parameters, or find that it has no finite minimum."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

STEPS = 100
"""The largest number of Newton steps. Fits with a finite minimum need about ten."""
SMALL_STEP = 1e-7
"""The relative size of a last step; Newton's method converges quadratically, so the error after it is far smaller."""
NULL = 1e-12
"""Directions whose curvature is at most this share of the largest are those in which the function is constant."""


class Expansion(NamedTuple):
    """The value and the derivatives of a function at a point, float64."""

    value: Tensor
    """Scalar."""
    gradient: Tensor
    """(P,)."""
    hessian: Tensor
    """(P, P), positive semidefinite."""


def minimize(expand: Callable[[Tensor], Expansion], start: Tensor) -> Tensor | None:
    """Minimise a convex function by Newton's method; None if no finite minimum is found.

    A cross entropy without a finite minimum falls exponentially: its gradient becomes as small as at a minimum, but the
    Newton steps do not. So the method stops at a small step, not at a small gradient.

    Args:
        expand: Returns value and derivatives at a point ``(P,)``. Directions in which the function is constant must be
            the same at all points, as for a cross entropy of affine functions.
        start: ``(P,)`` float64, where the function is not flat; for a cross entropy 0 is a good start.

    Returns:
        The minimum ``(P,)`` that is nearest to the start in the directions in which the function is constant.
    """
    point, here = start, expand(start)
    curvatures, directions = torch.linalg.eigh(here.hessian)
    basis = directions[:, curvatures > NULL * curvatures[-1]]
    for _ in range(STEPS):
        factor, failed = torch.linalg.cholesky_ex(basis.T @ here.hessian @ basis)
        if failed:
            return None
        step = -basis @ torch.cholesky_solve((basis.T @ here.gradient).unsqueeze(1), factor).squeeze(1)
        point, here = _search(expand, point, here, step)
        if step.abs().amax() <= SMALL_STEP * (1 + point.abs().amax()):
            return point
    return None


def _search(
    expand: Callable[[Tensor], Expansion], point: Tensor, here: Expansion, step: Tensor
) -> tuple[Tensor, Expansion]:
    """Halve the step until the value falls enough; a fall below the rounding of the value is not looked for."""
    slope, size = here.gradient @ step, 1.0
    there = expand(point + step)
    while -slope > 1e-12 * (1 + here.value) and not there.value <= here.value + 1e-4 * size * slope and size > 1e-9:
        size /= 2
        there = expand(point + size * step)
    return point + size * step, there
