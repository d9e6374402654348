"""Checks of settings, shapes and dtypes. None of them looks at the values of a batch."""

from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1


def widest_float(device: torch.device) -> torch.dtype:
    """Return the dtype of sums on a device: float64, or float32 on MPS, which has nothing wider."""
    return torch.float32 if device.type == "mps" else torch.float64


MAX_INTERVALS = 2**29
"""The product of a float32 (24 bits of mantissa) and an integer of up to 29 bits fits the 53 bits of a float64."""


def check_pattern_settings(*, k: int, t: int, num_classes: int) -> None:
    """Refuse a pattern length k outside [1, C], and a number of intervals t outside [2, 2^29]."""
    check_num_classes(num_classes)
    for name, value in (("k", k), ("t", t)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} must be an integer, but got {value!r}.")
    if not 1 <= k <= num_classes:
        raise ValueError(f"k must be from 1 to the number of classes ({num_classes}), but got {k}.")
    if t < 2:
        raise ValueError(f"t must be at least 2 (scores divide by t - 1), but got {t}.")
    if t > MAX_INTERVALS:
        raise ValueError(f"t must be at most {MAX_INTERVALS} (t times a confidence is exact up to there), but got {t}.")


def check_choice(name: str, value: object, choices: Any) -> None:
    """Refuse a value of the setting `name` that is not one of the choices of a `Literal`."""
    allowed = get_args(choices)
    if value not in allowed:
        *others, last = (repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, but got {value!r}.")


def check_num_classes(num_classes: int) -> None:
    """Refuse fewer than two classes."""
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, but got {num_classes}.")


LARGEST_MATRIX = 2**31
"""Bytes of a matrix (C, C), at most."""


def check_matrix_fits(num_classes: int, bytes_each: int) -> None:
    """Refuse a number of classes whose matrix (C, C) would take more than 2 GiB."""
    size = num_classes**2 * bytes_each
    if size > LARGEST_MATRIX:
        raise ValueError(
            f"num_classes must not need a matrix of more than {LARGEST_MATRIX / 2**30:g} GiB here, but "
            f"{num_classes} x {num_classes} numbers take {size / 2**30:.1f} GiB."
        )


def check_zero_division(zero_division: float) -> None:
    """Refuse a value for 0 / 0 that is not NaN, 0 or 1."""
    if zero_division == zero_division and zero_division not in (0, 1):
        raise ValueError(f"zero_division must be nan, 0 or 1, but got {zero_division}.")


def check_concern(concern: Tensor, num_classes: int) -> None:
    """Refuse a concern matrix, dense or sparse, that is not (C, C) with finite weights above 0 off the diagonal."""
    _check_matrix(concern, num_classes, layouts=(torch.strided, torch.sparse_coo))
    off_diagonal = _off_diagonal(concern)
    if (off_diagonal == 0).any():
        raise ValueError(
            "concern must hold finite weights > 0 off its diagonal, but got 0: the weights of a sample are divided by "
            "their sum, which must not be 0. Costs of 0 are for expected concern, decisions and margins."
        )
    _refuse(off_diagonal, ~(off_diagonal.isfinite() & (off_diagonal > 0)), "finite weights > 0 off its diagonal")


def check_costs(concern: Tensor, num_classes: int, *, referral: bool = False) -> None:
    """Refuse a matrix that is not (C, C) with finite costs >= 0 off the diagonal, one of them above 0.

    With ``referral``, one more column may hold costs of a referral, and columns before it those of coarse answers.
    """
    _check_matrix(concern, num_classes, referral=referral)
    costs = (concern.byte() if concern.dtype == torch.bool else concern).clone().fill_diagonal_(0)
    lowest, highest = costs.aminmax()  # one pass; both are NaN if a cost is
    if not (lowest >= 0 and highest < float("inf")):
        _refuse(costs, ~(costs.isfinite() & (costs >= 0)), "finite costs >= 0 off its diagonal")
    if not highest > 0:
        raise ValueError("concern must hold a cost above 0 off its diagonal, but all are 0.")


def check_pairs(concern: Tensor, num_classes: int) -> None:
    """Refuse pairs that are not a bool tensor (C, C)."""
    if not isinstance(concern, Tensor) or concern.dtype != torch.bool:
        given = f"dtype {concern.dtype}" if isinstance(concern, Tensor) else repr(concern)
        raise ValueError(
            "concern must be a ConcernSpec, or a bool tensor that is True for dangerous pairs, "
            f"because weights do not tell which errors are dangerous, but got {given}."
        )
    _check_matrix(concern, num_classes)


def _check_matrix(
    concern: Tensor, num_classes: int, *, referral: bool = False, layouts: Sequence[torch.layout] = (torch.strided,)
) -> None:
    if concern.layout not in layouts:
        raise ValueError(f"concern must have layout {' or '.join(map(str, layouts))}, but got {concern.layout}.")
    allowed = [(num_classes, num_classes), *([(num_classes, num_classes + 1)] if referral else [])]
    has_answers = referral and concern.ndim == 2 and len(concern) == num_classes < concern.shape[1]
    if concern.shape not in allowed and not has_answers:
        raise ValueError(
            f"concern must have shape {' or '.join(map(str, allowed))}, one row for each true class, "
            f"but got {tuple(concern.shape)}."
        )


def _off_diagonal(concern: Tensor) -> Tensor:
    if concern.layout == torch.sparse_coo:
        places, weights = concern.coalesce().indices(), concern.coalesce().values()
        return weights[places[0] != places[1]]
    rows, columns = concern.shape
    return concern[~torch.eye(rows, columns, dtype=torch.bool, device=concern.device)]


def _refuse(values: Tensor, bad: Tensor, rule: str) -> None:
    if bad.any():
        raise ValueError(f"concern must hold {rule}, but got {values[bad][0].item():g}.")


def check_priors(priors: Tensor, num_classes: int, *, name: str = "priors", above_0: bool = False) -> None:
    """Refuse priors that are not a tensor (C,) of frequencies with a sum of 1, or not above 0 if they must be."""
    if not isinstance(priors, Tensor) or not priors.is_floating_point() or priors.shape != (num_classes,):
        given = f"{priors.dtype} {tuple(priors.shape)}" if isinstance(priors, Tensor) else repr(priors)
        raise ValueError(f"{name} must be a floating point tensor of shape ({num_classes},), but got {given}.")
    in_range = priors > 0 if above_0 else priors >= 0
    if not in_range.all() or not sums_to_1(priors.double()):
        raise ValueError(f"{name} must be {'above 0' if above_0 else '>= 0'} and sum to 1, but got {priors.tolist()}.")


def check_target(target: Tensor, expected_shape: torch.Size) -> None:
    """Refuse a target that does not hold integer class indices of the expected shape."""
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise ValueError(f"target must hold integer class indices, but got dtype {target.dtype}.")
    if target.shape != expected_shape:
        raise ValueError(
            f"target must have shape {tuple(expected_shape)} to match preds, but got {tuple(target.shape)}."
        )


def check_trials(preds: Tensor, target: Tensor) -> None:
    """Refuse scores that are not floating point, and labels that are not integers or bools of their shape."""
    if not preds.is_floating_point():
        raise ValueError(f"preds must be floating point scores, but got dtype {preds.dtype}.")
    if target.is_floating_point() or target.is_complex() or target.shape != preds.shape:
        rule = f"target must be integers or bools of shape {tuple(preds.shape)}"
        raise ValueError(f"{rule}, but got {target.dtype} {tuple(target.shape)}.")


def check_scores(preds: Tensor, target: Tensor, num_classes: int) -> None:
    """Refuse preds that are not floating point of shape (N, C, ...), and a target that is not (N, ...)."""
    if not preds.is_floating_point():
        raise ValueError(f"preds must be floating point logits or probabilities, but got dtype {preds.dtype}.")
    check_by_class(preds)
    if preds.shape[1] != num_classes:
        raise ValueError(f"preds must have {num_classes} classes in dimension 1, but got shape {tuple(preds.shape)}.")
    check_target(target, preds.shape[:1] + preds.shape[2:])


def check_by_class(scores: Tensor, name: str = "preds") -> None:
    """Refuse scores without a dimension of classes."""
    if scores.ndim < 2:
        raise ValueError(f"{name} must have shape (N, C) or (N, C, ...), but got {tuple(scores.shape)}.")
