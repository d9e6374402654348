"""Checks of settings, shapes and dtypes; no check reads the values of predictions or labels."""

from collections.abc import Sequence
from math import inf, isnan, nan
from typing import Any, get_args

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1


def widest_float(device: torch.device) -> torch.dtype:
    """Return the dtype in which sums are computed on a device: float64, or float32 on MPS, which lacks float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def widened(values: Tensor) -> Tensor:
    """Convert values to the dtype in which sums are computed."""
    return values.to(widest_float(values.device))


def check_choice(name: str, value: object, choices: Any) -> None:
    """Check that ``value`` is one of the values of ``choices``, a `Literal`."""
    allowed = get_args(choices)
    require(value in allowed, "one_of", name, value, choices=allowed)


def check_num_classes(num_classes: int) -> None:
    """Check that ``num_classes`` is at least 2."""
    require(num_classes >= 2, "at_least", "num_classes", num_classes, minimum=2)


MAX_MATRIX_BYTES = 2**31
"""The maximum size of a matrix (C, C) in bytes: 2 GiB."""


def check_matrix_fits(num_classes: int, itemsize: int) -> None:
    """Check that ``num_classes`` is at least 2, and that (C, C) values of ``itemsize`` bytes take at most 2 GiB."""
    check_num_classes(num_classes)
    size = num_classes**2 * itemsize
    if size > MAX_MATRIX_BYTES:
        limit, needed = MAX_MATRIX_BYTES / 2**30, size / 2**30
        raise InvalidValueError(
            "matrix_too_large", "num_classes", limit=limit, number=num_classes, size=needed
        )


def check_zero_division(zero_division: float) -> None:
    """Check that ``zero_division``, the value of 0 / 0, is NaN, 0 or 1."""
    is_allowed = isnan(zero_division) or zero_division in (0, 1)
    require(is_allowed, "one_of", "zero_division", zero_division, choices=[nan, 0, 1])


def check_beta(beta: float) -> None:
    """Check that ``beta``, the weight of recall in an F score, is finite and above 0."""
    require(0 < beta < inf, "finite_above", "beta", beta, minimum=0)


def check_concern(concern: Tensor, num_classes: int) -> None:
    """Check that ``concern``, dense or sparse, is (C, C), finite and positive off the diagonal."""
    _check_matrix(concern, num_classes, layouts=(torch.strided, torch.sparse_coo))
    off_diagonal = _off_diagonal(concern)
    is_valid = off_diagonal.isfinite() & (off_diagonal > 0)
    require_all(is_valid, Rule("weights_off_diagonal", "concern"), off_diagonal)


def check_costs(concern: Tensor, num_classes: int, *, referral: bool = False) -> None:
    """Check that costs are (C, C), finite and >= 0 off the diagonal, and that at least one of them is above 0.

    With ``referral``, more columns are allowed: for coarse answers (groups of classes) and, last, for a referral.
    """
    _check_matrix(concern, num_classes, referral=referral)
    costs = concern.byte() if concern.dtype == torch.bool else concern
    costs = costs.clone().fill_diagonal_(0)
    is_valid = costs.isfinite() & (costs >= 0)
    require_all(is_valid, Rule("costs_off_diagonal", "concern"), costs)
    require(costs.any(), "some_cost", "concern")


def check_pairs(concern: Tensor, num_classes: int) -> None:
    """Check that ``concern``, which marks dangerous pairs of classes, is a bool tensor (C, C)."""
    require(concern.dtype == torch.bool, "pairs", "concern", concern.dtype)
    _check_matrix(concern, num_classes)


def _check_matrix(
    concern: Tensor,
    num_classes: int,
    *,
    referral: bool = False,
    layouts: Sequence[torch.layout] = (torch.strided,),
) -> None:
    require(concern.layout in layouts, "layout", "concern", concern.layout, layouts=layouts)
    allowed = [(num_classes, num_classes)]
    if referral:
        allowed.append((num_classes, num_classes + 1))
    has_coarse_answers = (
        referral
        and concern.ndim == 2
        and concern.shape[0] == num_classes
        and concern.shape[1] > num_classes
    )
    shape = " or ".join(map(str, allowed))
    require(
        concern.shape in allowed or has_coarse_answers,
        "shape",
        "concern",
        concern,
        shape=shape,
    )


def _off_diagonal(concern: Tensor) -> Tensor:
    if concern.layout == torch.sparse_coo:
        indices = concern.coalesce().indices()
        weights = concern.coalesce().values()
        return weights[indices[0] != indices[1]]
    rows, columns = concern.shape
    return concern[~torch.eye(rows, columns, dtype=torch.bool, device=concern.device)]


def require_all(is_valid: Tensor, rule: Rule, values: Tensor) -> None:
    """Raise an error that quotes the first of ``values`` that is not valid, if any; this waits for an accelerator."""
    if not is_valid.all():
        raise rule.broken_by(values[~is_valid][0].item())


def check_priors(
    priors: Tensor, num_classes: int, *, name: str = "priors", above_0: bool = False
) -> None:
    """Check that ``priors`` (C,) sum to 1 and are >= 0, or > 0 if ``above_0`` is set."""
    is_row = (
        isinstance(priors, Tensor)
        and priors.is_floating_point()
        and priors.shape == (num_classes,)
    )
    require(is_row, "float_shape", name, priors, shape=(num_classes,))
    in_range = priors > 0 if above_0 else priors >= 0
    is_valid = in_range.all() and sums_to_1(priors.double())
    require(
        is_valid,
        "positive_distribution" if above_0 else "distribution",
        name,
        priors.tolist(),
    )


def check_floating(preds: Tensor) -> None:
    """Check that ``preds`` is floating point."""
    require(preds.is_floating_point(), "floating", "preds", preds.dtype)


def check_target(target: Tensor, expected_shape: torch.Size) -> None:
    """Check that ``target`` has an integer dtype and the shape ``expected_shape``."""
    is_integer = (
        not target.is_floating_point()
        and not target.is_complex()
        and target.dtype != torch.bool
    )
    require(is_integer, "labels", "target", target.dtype)
    require(
        target.shape == expected_shape,
        "shape",
        "target",
        target,
        shape=tuple(expected_shape),
    )


def check_trials(preds: Tensor, target: Tensor) -> None:
    """Check that ``preds`` is floating point, and that ``target`` holds integers or bools in the same shape."""
    check_floating(preds)
    is_valid = (
        not target.is_floating_point()
        and not target.is_complex()
        and target.shape == preds.shape
    )
    require(is_valid, "trial_shape", "target", target, shape=tuple(preds.shape))


def check_scores(preds: Tensor, target: Tensor, num_classes: int) -> None:
    """Check that ``preds`` is floating point with shape (N, C, ...), and ``target`` an integer tensor (N, ...)."""
    check_floating(preds)
    check_by_class(preds)
    require(
        preds.shape[1] == num_classes,
        "class_dimension",
        "preds",
        preds,
        classes=num_classes,
    )
    check_target(target, preds.shape[:1] + preds.shape[2:])


def check_by_class(scores: Tensor, name: str = "preds") -> None:
    """Check that ``scores`` has at least two dimensions: samples and classes."""
    require(scores.ndim >= 2, "shape", name, scores, shape="(N, C) or (N, C, ...)")
