"""Statistics of classified samples as functions of how often each sample is drawn."""

from collections.abc import Callable

import torch
from torch import Tensor

from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.concern.expected_concern import decide
from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensors, costs_of
from mpcs_torch.functional.inputs.checks import check_costs, check_num_classes
from mpcs_torch.functional.inputs.faults import raise_first

Statistic = Callable[[Tensor], Tensor]
"""Takes int64 weights ``(R, N)``, how often each of R resamples draws each sample, and returns values (R,), float64."""


def mean_statistic(values: Tensor) -> Statistic:
    """Make a function of weights that computes the mean of a value of each sample.

    It serves for the MPCS (``meta_pattern_concern_score(..., reduction="none")``) and, of bools, for rates of errors
    or of dangerous errors.

    Args:
        values: ``(N,)`` floating point numbers without NaN and -infinity, or bools.

    Returns:
        A `Statistic`.

    Raises:
        ValueError: If ``values`` breaks its rule above.

    Example:
        >>> mean_statistic(torch.tensor([0.0, 1.0, 3.0]))(torch.tensor([[1, 1, 1], [0, 1, 2]]))
        tensor([1.3333, 2.3333], dtype=torch.float64)
    """
    if values.ndim != 1 or not (values.is_floating_point() or values.dtype == torch.bool):
        raise ValueError(f"values must be floating point or bools (N,), but got {values.dtype} {tuple(values.shape)}.")
    if values.is_floating_point():
        bad = values.isnan() | (values == -torch.inf)
        if bad.any():
            raise ValueError(f"values must not be NaN or -inf, but got {values[bad][0].item()}.")
    # Converted at each call: of the samples, a statistic holds no more than what it was given.
    return lambda weights: weighted_mean(weights.to(values.device), values.double())


def expected_concern_statistic(
    decisions: Tensor, target: Tensor, *, num_classes: int, concern: Tensor | ConcernLike | None = None
) -> Statistic:
    """Make a function of weights that computes the normalized `expected_concern` of decisions.

    The best constant decision is that of each resample: its share of each class decides what constant decisions cost.

    Args:
        decisions: ``(N,)`` integer decisions, with -1 for a referral if ``concern`` has a cost for it.
        target: ``(N,)`` integer class indices in ``[0, C)``.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or ``(C, C)`` or ``(C, C + 1)`` costs, as in `expected_concern`. Default: 1
            everywhere.

    Returns:
        A `Statistic`; NaN or infinite where `expected_concern` is.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> target, decisions = torch.tensor([0, 1, 1, 1]), torch.tensor([1, 1, 1, 0])
        >>> expected_concern_statistic(decisions, target, num_classes=2)(torch.tensor([[1, 1, 1, 1], [2, 1, 1, 0]]))
        tensor([2., 1.], dtype=torch.float64)
    """
    check_num_classes(num_classes)
    decisions, target, _ = as_tensors(decisions, target)
    matrix = torch.ones(num_classes, num_classes) if concern is None else costs_of(concern)
    matrix = matrix.to(decisions.device)
    check_costs(matrix, num_classes, referral=True)
    if decisions.is_floating_point() or decisions.ndim != 1:
        given = f"{decisions.dtype} {tuple(decisions.shape)}"
        raise ValueError(f"decisions must be integer decisions (N,), but got {given}.")
    decided = decide(
        decisions,
        target,
        concern=matrix,
        decision="most_probable",
        from_logits=True,
        ratio=None,
        ignore_index=None,
        sample_weight=None,
    )
    raise_first(decided.find_faults())
    by_class = without_diagonal(matrix).double()
    labels = decided.labels.target
    cost = by_class[labels, decided.predicted]

    def statistic(weights: Tensor) -> Tensor:
        drawn = weights.to(cost)
        of_class = drawn.new_zeros(len(drawn), num_classes).scatter_add_(1, labels.expand(len(drawn), -1), drawn)
        constant: Tensor = (of_class @ by_class).amin(1)
        return drawn @ cost / constant

    return statistic


def weighted_mean(weights: Tensor, values: Tensor) -> Tensor:
    """Return the means of values (n,) under each row of weights (R, n); infinite where an infinity is drawn."""
    drawn = weights.double()
    is_infinite = values.isinf()
    mean = drawn @ torch.where(is_infinite, 0.0, values) / drawn.sum(1)
    if is_infinite.any():  # 0 times infinity would be NaN
        mean = torch.where(drawn @ is_infinite.double() > 0, torch.inf, mean)
    return mean
