"""Checks of settings, shapes and dtypes; no check reads the values of predictions or labels."""

from collections.abc import Sequence
from math import inf, isnan
from typing import Any, get_args

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
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
    if value not in allowed:
        *first, last = map(repr, allowed)
        raise InvalidValueError(f"{name} must be {', '.join(first)} or {last}", repr(value))


def check_num_classes(num_classes: int) -> None:
    """Check that ``num_classes`` is at least 2."""
    require(num_classes >= 2, "num_classes must be at least 2", num_classes)


MAX_MATRIX_BYTES = 2**31
"""The maximum size of a matrix (C, C) in bytes: 2 GiB."""


def check_matrix_fits(num_classes: int, itemsize: int) -> None:
    """Check that ``num_classes`` is at least 2, and that (C, C) values of ``itemsize`` bytes take at most 2 GiB."""
    check_num_classes(num_classes)
    size = num_classes**2 * itemsize
    if size > MAX_MATRIX_BYTES:
        raise ValueError(
            f"num_classes must not need a matrix of more than {MAX_MATRIX_BYTES / 2**30:g} GiB here, but "
            f"{num_classes} x {num_classes} numbers take {size / 2**30:.1f} GiB."
        )


def check_zero_division(zero_division: float) -> None:
    """Check that ``zero_division``, the value of 0 / 0, is NaN, 0 or 1."""
    require(isnan(zero_division) or zero_division in (0, 1), "zero_division must be nan, 0 or 1", zero_division)


def check_beta(beta: float) -> None:
    """Check that ``beta``, the weight of recall in an F score, is finite and above 0."""
    require(0 < beta < inf, "beta must be finite and > 0", beta)


def check_concern(concern: Tensor, num_classes: int) -> None:
    """Check that ``concern``, dense or sparse, is (C, C), finite and positive off the diagonal."""
    _check_matrix(concern, num_classes, layouts=(torch.strided, torch.sparse_coo))
    off_diagonal = _off_diagonal(concern)
    if (off_diagonal == 0).any():
        raise ValueError(
            "concern must hold finite weights > 0 off its diagonal, but got 0: the weights of a sample are divided by "
            "their sum, which must not be 0. Costs of 0 are for expected concern, decisions and margins."
        )
    is_valid = off_diagonal.isfinite() & (off_diagonal > 0)
    require_all(is_valid, "concern must hold finite weights > 0 off its diagonal", off_diagonal)


def check_costs(concern: Tensor, num_classes: int, *, referral: bool = False) -> None:
    """Check that costs are (C, C), finite and >= 0 off the diagonal, and that at least one of them is above 0.

    With ``referral``, more columns are allowed: for coarse answers (groups of classes) and, last, for a referral.
    """
    _check_matrix(concern, num_classes, referral=referral)
    costs = (concern.byte() if concern.dtype == torch.bool else concern).clone().fill_diagonal_(0)
    require_all(costs.isfinite() & (costs >= 0), "concern must hold finite costs >= 0 off its diagonal", costs)
    if not costs.any():
        raise ValueError("concern must hold a cost above 0 off its diagonal, but all are 0.")


def check_pairs(concern: Tensor, num_classes: int) -> None:
    """Check that ``concern``, which marks dangerous pairs of classes, is a bool tensor (C, C)."""
    rule = (
        "concern must be a ConcernSpec, or a bool tensor that is True for dangerous pairs, "
        "because weights do not define which errors are dangerous"
    )
    require(concern.dtype == torch.bool, rule, f"dtype {concern.dtype}")
    _check_matrix(concern, num_classes)


def _check_matrix(
    concern: Tensor, num_classes: int, *, referral: bool = False, layouts: Sequence[torch.layout] = (torch.strided,)
) -> None:
    require(concern.layout in layouts, f"concern must have layout {' or '.join(map(str, layouts))}", concern.layout)
    allowed = [(num_classes, num_classes), *([(num_classes, num_classes + 1)] if referral else [])]
    has_coarse_answers = referral and concern.ndim == 2 and len(concern) == num_classes < concern.shape[1]
    rule = f"concern must have shape {' or '.join(map(str, allowed))}, one row for each true class"
    require(concern.shape in allowed or has_coarse_answers, rule, tuple(concern.shape))


def _off_diagonal(concern: Tensor) -> Tensor:
    if concern.layout == torch.sparse_coo:
        indices = concern.coalesce().indices()
        weights = concern.coalesce().values()
        return weights[indices[0] != indices[1]]
    rows, columns = concern.shape
    return concern[~torch.eye(rows, columns, dtype=torch.bool, device=concern.device)]


def require_all(is_valid: Tensor, rule: str, values: Tensor) -> None:
    """Raise an error that quotes the first of ``values`` that is not valid, if any; this waits for an accelerator."""
    if not is_valid.all():
        raise InvalidValueError(rule, f"{values[~is_valid][0].item():g}")


def check_priors(priors: Tensor, num_classes: int, *, name: str = "priors", above_0: bool = False) -> None:
    """Check that ``priors`` (C,) sum to 1 and are >= 0, or > 0 if ``above_0`` is set."""
    is_row = isinstance(priors, Tensor) and priors.is_floating_point() and priors.shape == (num_classes,)
    actual = f"{priors.dtype} {tuple(priors.shape)}" if isinstance(priors, Tensor) else repr(priors)
    require(is_row, f"{name} must be a floating point tensor of shape ({num_classes},)", actual)
    in_range = priors > 0 if above_0 else priors >= 0
    is_valid = in_range.all() and sums_to_1(priors.double())
    require(is_valid, f"{name} must be {'above 0' if above_0 else '>= 0'} and sum to 1", priors.tolist())


def check_floating(preds: Tensor, what: str) -> None:
    """Check that ``preds`` is floating point; ``what`` says in the error message what it holds."""
    if not preds.is_floating_point():
        raise InvalidValueError(f"preds must be floating point {what}", f"dtype {preds.dtype}")


def check_target(target: Tensor, expected_shape: torch.Size) -> None:
    """Check that ``target`` has an integer dtype and the shape ``expected_shape``."""
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise ValueError(f"target must hold integer class indices, but got dtype {target.dtype}.")
    if target.shape != expected_shape:
        raise ValueError(
            f"target must have shape {tuple(expected_shape)} to match preds, but got {tuple(target.shape)}."
        )


def check_trials(preds: Tensor, target: Tensor) -> None:
    """Check that ``preds`` is floating point, and that ``target`` holds integers or bools in the same shape."""
    check_floating(preds, "scores")
    is_valid = not target.is_floating_point() and not target.is_complex() and target.shape == preds.shape
    rule = f"target must be integers or bools of shape {tuple(preds.shape)}"
    require(is_valid, rule, f"{target.dtype} {tuple(target.shape)}")


def check_scores(preds: Tensor, target: Tensor, num_classes: int) -> None:
    """Check that ``preds`` is floating point with shape (N, C, ...), and ``target`` an integer tensor (N, ...)."""
    check_floating(preds, "logits or probabilities")
    check_by_class(preds)
    if preds.shape[1] != num_classes:
        raise ValueError(f"preds must have {num_classes} classes in dimension 1, but got shape {tuple(preds.shape)}.")
    check_target(target, preds.shape[:1] + preds.shape[2:])


def check_by_class(scores: Tensor, name: str = "preds") -> None:
    """Check that ``scores`` has at least two dimensions: samples and classes."""
    if scores.ndim < 2:
        raise ValueError(f"{name} must have shape (N, C) or (N, C, ...), but got {tuple(scores.shape)}.")
