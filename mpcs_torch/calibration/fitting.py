"""The fit of calibrations: checked scores and labels in float64, and the minimum of a convex function."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.detection.errors import check_both_occur
from mpcs_torch.functional.inputs.checks import check_by_class, check_num_classes, widest_float
from mpcs_torch.functional.inputs.faults import Fault, finite, raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.functional.inputs.trials import flatten_trials


class CalibrationWarning(UserWarning):
    """The data do not determine a calibration, or the scores carry no information about the labels."""


REVERSED = "targets do not score higher than non-targets: scores are reversed or carry no information"
"""A reason for a `CalibrationWarning`."""


class LabelledLogits(NamedTuple):
    """The logits and labels of M samples."""

    logits: Tensor
    """(M, C), float64, finite."""
    target: Tensor
    """(M,), int64."""

    def of_true_class(self, values: Tensor) -> Tensor:
        """Pick the value of the true class from each row of (M, C): (M,)."""
        return values.gather(1, self.target.unsqueeze(1)).squeeze(1)


def labelled_logits(preds: Tensor, target: Tensor, num_classes: int) -> LabelledLogits:
    """Check logits (N, C, ...) and labels (N, ...) and flatten them; refuse an empty batch."""
    check_num_classes(num_classes)
    check_by_class(preds)
    samples = flatten_samples(preds, target, num_classes=num_classes, scale="logits")
    raise_first([samples.find_faults()[0], not_finite(samples.scores)])
    if not len(samples.scores):
        raise ValueError(f"preds must hold at least one sample, but has shape {tuple(preds.shape)}.")
    logits = in_float64(samples.scores)
    return LabelledLogits(logits, samples.labels.target.to(logits.device))


def not_finite(logits: Tensor) -> Fault:
    """Find rows of logits (M, C) that are not finite."""
    rule = "preds must be finite logits (clamp probabilities, for example to 1e-12, before you take their logarithm)"
    return Fault(rule, logits, [finite(logits.amin(dim=1)), finite(logits.amax(dim=1))])


def labelled_trials(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores (M,), float64, and whether they are of targets, bool; refuse infinite scores and one kind alone."""
    batch = flatten_trials(preds, target, num_classes=None, ignore_index=None)
    raise_first([*batch.faults, Fault("preds must be finite", batch.scores, [finite(batch.scores)])])
    scores = in_float64(batch.scores)
    is_target = batch.labels.to(scores.device) == 1
    check_both_occur(is_target)
    return scores, is_target


def in_float64(values: Tensor) -> Tensor:
    """Return values in float64, without a gradient; on the CPU where their device has no float64."""
    has_float64 = widest_float(values.device) == torch.float64
    return values.detach().to(values.device if has_float64 else "cpu").double()


def upcast_half(preds: Tensor) -> Tensor:
    """Return scores in float32 if they are of a half type; refuse scores that are not floating point."""
    require(preds.is_floating_point(), "preds must be floating point scores", f"dtype {preds.dtype}")
    return preds.float() if preds.dtype in (torch.float16, torch.bfloat16) else preds


STEPS = 100
"""The largest number of Newton steps. Fits with a finite minimum need about ten."""


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
    basis = directions[:, curvatures > 1e-12 * curvatures[-1]]  # in the others the function is constant
    for _ in range(STEPS):
        factor, failed = torch.linalg.cholesky_ex(basis.T @ here.hessian @ basis)
        if failed:
            return None
        step = -basis @ torch.cholesky_solve((basis.T @ here.gradient).unsqueeze(1), factor).squeeze(1)
        point, here = _search(expand, point, here, step)
        if step.abs().amax() <= 1e-7 * (1 + point.abs().amax()):  # Newton's last error is far smaller
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
