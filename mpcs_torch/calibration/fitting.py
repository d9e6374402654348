"""Shared parts of calibration fits: validated scores and labels in float64, and Newton's method."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.detection.errors import check_both_occur, flatten_trials
from mpcs_torch.functional.inputs.checks import check_by_class, check_num_classes, widest_float
from mpcs_torch.functional.inputs.faults import Fault, finite, raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples


class CalibrationWarning(UserWarning):
    """A warning that data do not determine a calibration, or that scores are uninformative about the labels."""


REVERSED = "targets do not score higher than non-targets: scores are reversed or uninformative"
"""The reason in a `CalibrationWarning` if calibrated scores do not rise with the scores."""


class LabelledLogits(NamedTuple):
    """The logits and labels of M samples."""

    logits: Tensor
    """The logits: (M, C), float64, finite."""
    target: Tensor
    """The true classes: (M,), int64."""

    def of_true_class(self, values: Tensor) -> Tensor:
        """Return the value of the true class from each row of ``values`` (M, C): (M,)."""
        return values.gather(1, self.target.unsqueeze(1)).squeeze(1)


def labelled_logits(preds: Tensor, target: Tensor, num_classes: int) -> LabelledLogits:
    """Validate and flatten logits (N, C, ...) and labels (N, ...); raise a ValueError for an empty batch."""
    check_num_classes(num_classes)
    check_by_class(preds)
    samples = flatten_samples(preds, target, num_classes=num_classes, scale="logits")
    raise_first([samples.find_faults()[0], not_finite(samples.scores)])
    if not len(samples.scores):
        raise ValueError(f"preds must have at least one sample, but has shape {tuple(preds.shape)}.")
    logits = in_float64(samples.scores)
    return LabelledLogits(logits, samples.labels.target.to(logits.device))


def not_finite(logits: Tensor) -> Fault:
    """Return a `Fault` that marks the rows of ``logits`` (M, C) with values that are not finite."""
    rule = "preds must be finite logits (clamp probabilities, for example to 1e-12, before taking logarithms)"
    return Fault(rule, logits, [finite(logits.amin(dim=1)), finite(logits.amax(dim=1))])


def labelled_trials(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Validate trials, and return scores (M,), float64, and the mask of targets (M,); both kinds must occur."""
    batch = flatten_trials(preds, target, num_classes=None, ignore_index=None)
    raise_first([*batch.faults, Fault("preds must be finite", batch.scores, [finite(batch.scores)])])
    scores = in_float64(batch.scores)
    is_target = batch.labels.to(scores.device) == 1
    check_both_occur(is_target)
    return scores, is_target


def in_float64(values: Tensor) -> Tensor:
    """Convert values to float64 without gradient; on the CPU if their device has no float64."""
    has_float64 = widest_float(values.device) == torch.float64
    return values.detach().to(values.device if has_float64 else "cpu").double()


def upcast_half(preds: Tensor) -> Tensor:
    """Convert scores of 16 bits to float32; raise a ValueError for scores that are not floating point."""
    require(preds.is_floating_point(), "preds must be floating point scores", f"dtype {preds.dtype}")
    return preds.float() if preds.dtype in (torch.float16, torch.bfloat16) else preds


STEPS = 100
"""The maximum number of Newton steps. Fits with a finite minimum need about ten."""


class Expansion(NamedTuple):
    """The value and the derivatives of a function at a point, float64."""

    value: Tensor
    """The value, a scalar."""
    gradient: Tensor
    """The gradient (P,)."""
    hessian: Tensor
    """The Hessian (P, P), positive semidefinite."""


def minimize(expand: Callable[[Tensor], Expansion], start: Tensor) -> Tensor | None:
    """Minimize a convex function by Newton's method from ``start`` (P,); return None if it finds no finite minimum.

    A cross entropy without a finite minimum decays exponentially: its gradient vanishes as at a minimum, but the Newton
    steps do not. So the stopping criterion is a small step, not a small gradient. The null space of the Hessian must be
    the same at all points, as for the cross entropy of affine functions; the point does not move in its directions.
    """
    point, here = start, expand(start)
    curvatures, directions = torch.linalg.eigh(here.hessian)
    basis = directions[:, curvatures > 1e-12 * curvatures[-1]]  # the range; the function is constant in the null space
    for _ in range(STEPS):
        factor, failed = torch.linalg.cholesky_ex(basis.T @ here.hessian @ basis)
        if failed:
            return None
        step = -basis @ torch.cholesky_solve((basis.T @ here.gradient).unsqueeze(1), factor).squeeze(1)
        point, here = _search(expand, point, here, step)
        if step.abs().amax() <= 1e-7 * (1 + point.abs().amax()):  # the error that is left after the step is far smaller
            return point
    return None


def _search(
    expand: Callable[[Tensor], Expansion], point: Tensor, here: Expansion, step: Tensor
) -> tuple[Tensor, Expansion]:
    """Halve ``step`` until the value decreases enough (Armijo's rule); return the new point and its expansion."""
    slope, size = here.gradient @ step, 1.0
    there = expand(point + step)
    while -slope > 1e-12 * (1 + here.value) and not there.value <= here.value + 1e-4 * size * slope and size > 1e-9:
        size /= 2
        there = expand(point + size * step)
    return point + size * step, there
